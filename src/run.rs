//! One run as a script to read: start servers, set up, load, warm up, measure, write, stop.
