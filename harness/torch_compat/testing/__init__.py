"""For the tests of contributors, in any repository: proofs of upgraders, and calls of operators as strategies of hypothesis."""
