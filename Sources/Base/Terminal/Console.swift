import Glibc

/// The standard streams. Results go to standard output, everything else to standard error, so that a pipe receives only
/// the results.
public enum Console {
    /// A standard stream.
    public enum Stream: Int32, Sendable {
        case input = 0
        case output = 1
        case errors = 2

        /// True if the stream is a terminal.
        public var isTerminal: Bool { isatty(rawValue) == 1 }

        /// True if colour may be used: on a terminal that is not `dumb`, and without `NO_COLOR` (no-color.org).
        public var hasColor: Bool { isTerminal && Console.allowsColor(Console.variable) }

        /// True if symbols such as ✓ can be shown: on a terminal that has them, in a locale whose encoding is UTF-8.
        public var hasSymbols: Bool { isTerminal && Console.allowsSymbols(Console.variable) }
    }

    /// False for a terminal that shows control sequences instead of following them.
    static var movesCursor: Bool { movesCursor(variable) }

    static func movesCursor(_ environment: (String) -> String?) -> Bool {
        !["", "dumb"].contains(environment("TERM") ?? "")
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    static func allowsColor(_ environment: (String) -> String?) -> Bool {
        (environment("NO_COLOR") ?? "").isEmpty && environment("TERM") != "dumb"
    }

    /// The fonts of the kernel's own console (`linux`) have no such symbols.
    static func allowsSymbols(_ environment: (String) -> String?) -> Bool {
        guard !["dumb", "linux"].contains(environment("TERM")) else { return false }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap(environment).first { !$0.isEmpty } ?? ""
        return ["utf-8", "utf8"].contains { locale.lowercased().hasSuffix($0) }
    }

    /// Writes the whole text, unbuffered.
    ///
    /// - Returns: false if the write fails (a full disk, a closed descriptor).
    public static func write(_ text: String, to stream: Stream) -> Bool {
        write(Array(text.utf8), to: stream.rawValue)
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written)
            }
            if count >= 0 {
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            // Another process made the terminal or pipe non-blocking, which applies to all processes that use it.
            case EAGAIN:
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&entry, 1, -1)
            default: return false
            }
        }
        return true
    }
}

/// How a piece of text is emphasized.
public enum Style: String, Sendable {
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// The text in this style if the stream has colour, otherwise unchanged.
    public func apply(_ text: String, on stream: Console.Stream) -> String {
        stream.hasColor ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
    }
}
