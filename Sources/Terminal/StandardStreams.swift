import Glibc

/// The descriptors 0, 1 and 2, which a caller may have closed (`<&-`).
public enum StandardStreams {
    /// Opens `/dev/null` in place of each one that is closed. Otherwise the next file or socket that the program opens
    /// would get that number, and would be read as standard input or written to as standard output.
    ///
    /// Reading gives the end of the input at once. Writing fails, as it does on a closed descriptor: it is opened for
    /// reading alone.
    public static func openClosedOnes() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free, which is this one: those below it are open.
            _ = unsafe open("/dev/null", O_RDONLY)
        }
    }
}
