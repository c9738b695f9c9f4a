import Glibc

/// The standard streams. Results go to standard output, everything else to standard error.
public enum Console {
    public enum Stream: Int32, Sendable {
        case input = 0
        case output = 1
        case errors = 2
        public var isTerminal: Bool { isatty(rawValue) == 1 }
        /// On a terminal that is not `dumb`, and without `NO_COLOR` (no-color.org).
        public var hasColor: Bool { isTerminal && Console.allowsColor(Console.variable) }
        /// Symbols such as ✓ can be shown: on a terminal that has them, in a locale whose encoding is UTF-8.
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
        return isUTF8(environment)
    }

    /// Of the locale.
    public static var isUTF8: Bool { isUTF8(variable) }

    private static func isUTF8(_ environment: (String) -> String?) -> Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap(environment).first { !$0.isEmpty } ?? ""
        return ["utf-8", "utf8"].contains { locale.lowercased().hasSuffix($0) }
    }

    /// The whole text, unbuffered. False if the write fails (a full disk, a closed descriptor).
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
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// Unchanged if the stream has no colour.
    public func apply(_ text: String, on stream: Console.Stream) -> String {
        stream.hasColor ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
    }
}

/// The descriptors 0, 1 and 2, which the calling program may have closed (`<&-`).
public enum StandardStreams {
    /// Opens `/dev/null` in place of each closed one. Otherwise the next file or socket would get its number, and would
    /// be used as standard input or output. Writing fails, because it is opened for reading only.
    public static func openClosedOnes() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one, because the lower ones are open.
            _ = unsafe open("/dev/null", O_RDONLY)
        }
    }
}

extension Console.Stream {
    /// False for a process in the background, which the kernel would stop if it read from its terminal (SIGTTIN).
    public var isInForeground: Bool {
        let group = tcgetpgrp(rawValue)
        return group < 0 || group == getpgrp()
    }

    /// What was typed there since it was read last; nothing in the background.
    public func readTyped() -> [UInt8] {
        var entry = pollfd(fd: rawValue, events: Int16(POLLIN), revents: 0)
        guard isInForeground, unsafe poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLIN) != 0 else { return [] }
        var typed = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(rawValue, &typed, typed.count)
        return Array(typed[..<max(0, count)])
    }

    /// Nil if the stream is no terminal or does not report them.
    public var columns: Int? { size.map { Int($0.ws_col) } }
    public var rows: Int? { size.flatMap { $0.ws_row > 0 ? Int($0.ws_row) : nil } }

    private var size: winsize? {
        var size = winsize()
        guard isTerminal, unsafe ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return size
    }
}

/// What a program waits for, shown on standard error. On a terminal it is one line that is updated in place and cut to
/// the terminal's width, because a wrapped line would scroll the screen with each update. Elsewhere, and with
/// `TERM=dumb`, the first text is written once.
public final class ProgressLine {
    private let isTerminal: Bool
    private let columns: () -> Int
    private let write: (String) -> Void
    private var shown = ""

    public convenience init() {
        self.init(
            isTerminal: Console.Stream.errors.isTerminal && Console.movesCursor,
            // A terminal that does not report its width is treated as 80 columns wide.
            columns: { Console.Stream.errors.columns ?? 80 }
        ) { _ = Console.write($0, to: .errors) }
    }

    init(isTerminal: Bool, columns: @escaping () -> Int = { 80 }, write: @escaping (String) -> Void) {
        self.isTerminal = isTerminal
        self.columns = columns
        self.write = write
    }

    /// Both must be safe for a terminal. The text is cut rather than the ending, unless hardly any text would be left.
    public func show(_ text: String, ending: String = "") { show([text], ending: ending, hint: "") }

    /// Shows the first of the texts that fits with the ending and the hint, else the first that fits with the ending
    /// alone. If none does, the last is cut. All must be safe for a terminal; the one that says the most is first.
    public func show(_ texts: [String], ending: String, hint: String) {
        guard isTerminal else {
            let line = (texts.first ?? "") + ending + hint
            if shown.isEmpty { write(line + "\n") }
            shown = line
            return
        }
        // The last column stays empty: some terminals wrap as soon as it is written.
        let line = ProgressLine.line(texts, ending, hint, room: columns() - 1)
        guard line != shown else { return }
        write(ProgressLine.erasure + line)
        shown = line
    }

    /// Moves to the start of the line and erases it.
    private static let erasure = "\r\u{1B}[K"

    private static func line(_ texts: [String], _ ending: String, _ hint: String, room: Int) -> String {
        for end in [ending + hint, ending] {
            if let text = texts.first(where: { TextWidth.of($0 + end) <= room }) { return text + end }
        }
        let text = texts.last ?? ""
        let left = room - TextWidth.of(ending)
        // With fewer than 12 columns for the text, the whole is cut at its end instead.
        return left < 12 ? TextWidth.cut(text + ending, to: room) : TextWidth.cut(text, to: left) + ending
    }

    /// Erases the line of another thread's progress, which shows it again at its next update.
    public static func erase() {
        if Console.Stream.errors.isTerminal, Console.movesCursor { _ = Console.write(erasure, to: .errors) }
    }

    /// The next output starts at the beginning of the line.
    public func clear() {
        guard isTerminal else { return }
        if !shown.isEmpty { write(ProgressLine.erasure) }
        shown = ""
    }
}
