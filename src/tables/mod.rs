//! The tables that a scenario asks for, made from run directories alone.
