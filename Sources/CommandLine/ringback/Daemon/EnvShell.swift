import ArgumentParser
import Terminal

/// The shells whose syntax is known. A value is quoted so that the shell reads it unchanged.
enum Shell: String, CaseIterable, ExpressibleByArgument {
    case sh, bash, zsh, fish, csh

    /// A line that sets a variable for the shell and what it starts; nil for a value with control characters.
    func assignment(_ name: String, _ value: String) -> String? {
        guard !value.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }) else {
            return nil
        }
        return switch self {
        case .sh, .bash, .zsh: "export \(name)=\(quoted(value))"
        case .fish: "set -gx \(name) \(quoted(value))"
        // The `eval` of csh joins lines, so that each needs a semicolon.
        case .csh: "setenv \(name) \(quoted(value));"
        }
    }

    /// A word that no shell changes needs no quotes.
    func quoted(_ value: String) -> String {
        guard !ShellWord.isPlain(value) else { return value }
        switch self {
        case .sh, .bash, .zsh: return ShellWord.quoted(value)
        case .fish: return "'" + value.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
        // csh looks for history (`!`) within quotes too.
        case .csh: return "'" + value.replacing("'", with: "'\\''").replacing("!", with: "\\!") + "'"
        }
    }
}
