import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv = nn.Conv2d(n, n, 3, padding=1)
        self.norm = nn.BatchNorm2d(n)
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x))) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(3), Block(3))
        self.lstm = nn.LSTM(4, 5, 1)
        self.attention = nn.MultiheadAttention(8, 2)
        self.head = nn.Linear(3, 2)
        self.config = {"width": 3, "names": ("a", "b")}

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))
