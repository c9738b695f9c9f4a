import Glibc

/// The descriptors 0, 1 and 2, which the calling program may have closed (`<&-`).
public enum StandardStreams {
    /// Opens `/dev/null` in place of each closed one. Otherwise the next file or socket that the program opens would
    /// get its number, and would be used as standard input or output.
    ///
    /// Reading returns end of file. Writing fails, as on a closed descriptor, because it is opened for reading only.
    public static func openClosedOnes() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one, because the lower ones are open.
            _ = unsafe open("/dev/null", O_RDONLY)
        }
    }
}
