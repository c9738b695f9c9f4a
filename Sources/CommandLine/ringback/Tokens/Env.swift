import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

struct Env: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Print the shell command that sets RINGBACK_SOCK to the daemon's socket.",
        discussion: """
            sh, bash, zsh: eval "$(ringback env)"
            fish:          ringback env --shell fish | source
            csh:           eval "`ringback env --shell csh`"
            """)

    @Option(help: .value("name", "The shell: sh, bash, zsh, fish or csh.")) var shell = Shell.sh
    @OptionGroup var options: CallOptions

    func run() throws {
        // The shell may change its working directory.
        guard let path = Path.absolute(try SocketPlace.path(stated: daemon.socket)) else {
            throw RingbackError(.systemError, "The working directory was deleted. Name the socket by an absolute path.")
        }
        guard !json.isWanted else { return Output.object(["RINGBACK_SOCK": path]) }
        guard let line = shell.assignment("RINGBACK_SOCK", path) else {
            throw RingbackError("no_place", "The socket's path holds a control character, which a shell could misread.")
        }
        Output.line(line)
    }
}

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
