public import RingbackBase

extension PathTrouble {
    /// Makes the path safe. `user` is the uid that it must belong to.
    public func command(for path: String, user: UInt32) -> ShownCommand {
        switch self {
        case .writableByOthers: ShownCommand("chmod go-w \(path)")
        case .readableByOthers: ShownCommand("chmod 600 \(path)")
        case .openToOthers: ShownCommand("chmod 700 \(path)")
        case .foreignOwner: ShownCommand("chown \(user) \(path)")
        }
    }
}

/// Words of commands for a POSIX shell.
public enum ShellWord {
    /// No shell changes it.
    public static func isPlain(_ word: String) -> Bool {
        !word.isEmpty
            && word.utf8.allSatisfy { byte in
                (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
                    || (byte >= UInt8(ascii: "-") && byte <= UInt8(ascii: ":")) || "_@+".utf8.contains(byte)
            }
    }

    /// In single quotes, unless it is plain.
    public static func quoted(_ word: String) -> String { isPlain(word) ? word : inQuotes(word) }

    /// Also quotes a word that ends with a period, so that no reader takes it for the end of the sentence.
    static func quotedInSentence(_ word: String) -> String { word.hasSuffix(".") ? inQuotes(word) : quoted(word) }

    /// True if a shell is in single quotes after the text, given whether it was before.
    static func isOpen(after text: String, quoted isQuoted: Bool) -> Bool {
        var isQuoted = isQuoted
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "'") {
                isQuoted.toggle()
            } else {
                isEscaped = !isQuoted && byte == UInt8(ascii: "\\")
            }
        }
        return isQuoted
    }

    static func inQuotes(_ word: String) -> String {
        "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
