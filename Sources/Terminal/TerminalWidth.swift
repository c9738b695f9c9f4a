// The rule: what is drawn must fit, and a width that nobody tells is one that nothing may be drawn for.

import Glibc

extension Console.Stream {
    /// Places on a line of the terminal; nil if it is none, or does not say.
    public var columns: Int? {
        size.map { Int($0.ws_col) }
    }

    /// Lines that the terminal shows at once; nil if it is none, or does not say.
    public var rows: Int? {
        size.flatMap { $0.ws_row > 0 ? Int($0.ws_row) : nil }
    }

    private var size: winsize? {
        var size = winsize()
        guard isTerminal, unsafe ioctl(rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return size
    }
}
