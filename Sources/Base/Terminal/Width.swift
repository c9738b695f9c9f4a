// Output must fit the terminal; if its width is unknown, nothing that needs a width is drawn.

import Glibc

extension Console.Stream {
    /// The terminal's columns; nil if the stream is no terminal or does not report them.
    public var columns: Int? {
        size.map { Int($0.ws_col) }
    }

    /// The terminal's rows; nil if the stream is no terminal or does not report them.
    public var rows: Int? {
        size.flatMap { $0.ws_row > 0 ? Int($0.ws_row) : nil }
    }

    private var size: winsize? {
        var size = winsize()
        guard isTerminal, unsafe ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return size
    }
}
