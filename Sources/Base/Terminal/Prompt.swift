import Glibc

nonisolated(unsafe) private var formerMode = termios()
nonisolated(unsafe) private var isModeChanged = false

/// Single keys, while a program waits for something else: until its end the terminal has neither line editing nor echo.
/// Nothing is read in the background, where the kernel would stop the process (SIGTTIN).
public struct TerminalKeys {
    /// Nil if standard input is no terminal, or this process is in the background.
    public init?() {
        guard TerminalKeys.isInForeground, unsafe tcgetattr(0, &formerMode) == 0 else { return nil }
        var raw = unsafe formerMode
        raw.c_lflag &= ~tcflag_t(ECHO | ICANON)
        unsafe isModeChanged = true
        unsafe tcsetattr(0, TCSANOW, &raw)
    }

    public func end() { TerminalKeys.restoreMode() }

    /// Does only what a signal's handler may do, for one that ends the process.
    public static func restoreMode() {
        guard unsafe isModeChanged, isInForeground else { return }
        unsafe isModeChanged = false
        unsafe tcsetattr(0, TCSANOW, &formerMode)
    }

    /// True if the key, a letter, is among those that were pressed since the last call.
    public func wasPressed(_ letter: Character) -> Bool {
        String(decoding: Console.Stream.input.readTyped(), as: UTF8.self).lowercased().contains(letter)
    }

    /// The kernel stops a read in the background only at the terminal that controls the process.
    private static var isInForeground: Bool {
        Console.Stream.input.isTerminal && Console.Stream.input.isInForeground
    }
}

/// Questions to the user. Pasted text is not shown, because a callback URL contains a code.
public enum Prompt {
    /// Asks on standard error. At the end of the input the line is ended, so that what follows is on a line of its own.
    public static func confirm(_ question: String) -> Bool {
        _ = Console.write(
            TextWrap.wrapped(question + " [y/N]", columns: Console.Stream.errors.columns) + " ", to: .errors)
        guard let answer = readLine(strippingNewline: true) else {
            _ = Console.write("\n", to: .errors)
            return false
        }
        return isYes(answer)
    }

    public static func isYes(_ answer: String) -> Bool {
        let word = answer.drop { $0 == " " }.lowercased().prefix { $0 != " " }
        return ["y", "yes", "j", "ja", "д", "да"].contains(String(word))
    }

    /// Reads a line from the terminal without showing it. Nil at end of file, and when `interruption` or `other`
    /// becomes readable. The terminal's own line editing holds at most 4,095 bytes, and a callback URL can be longer,
    /// so line editing and echo are switched off.
    public static func readHidden(
        _ question: String, limit: Int, interruption: Int32, orEndedBy other: Int32 = -1
    ) -> String? {
        var saved = termios()
        guard unsafe tcgetattr(0, &saved) == 0 else { return nil }
        var raw = saved
        raw.c_lflag &= ~tcflag_t(ECHO | ICANON)
        // Before the question is written, so that an immediate answer is not shown.
        unsafe tcsetattr(0, TCSANOW, &raw)
        _ = Console.write(question, to: .errors)
        defer {
            unsafe tcsetattr(0, TCSANOW, &saved)
            _ = Console.write("\n", to: .errors)
        }
        var line: [UInt8] = []
        while line.count <= limit {
            var entries = [0, interruption, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard unsafe poll(&entries, 3, -1) >= 0 || errno == EINTR else { return nil }
            if entries[1].revents != 0 || entries[2].revents != 0 { return nil }
            guard entries[0].revents != 0 else { continue }
            var byte: UInt8 = 0
            let count = unsafe read(0, &byte, 1)
            let code = errno
            if count < 0, code == EINTR { continue }
            guard count == 1 else { return nil }
            switch byte {
            case 10, 13: return String(decoding: line, as: UTF8.self)
            case 4: return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
            case 8, 127: if !line.isEmpty { line.removeLast() }
            default: line.append(byte)
            }
        }
        return nil
    }
}
