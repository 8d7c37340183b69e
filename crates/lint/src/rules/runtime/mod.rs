//! Compilers, streams, process groups, profilers.

rules!(stream_created_in_loop);
