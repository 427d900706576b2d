//! A scripted TCP server for tests: answers after known times, cuts off, answers garbage.
