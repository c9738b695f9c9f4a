import ArgumentParser
import FilePaths
import Glibc
import RingbackClient
import StrictJSON

struct Env: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the shell command that sets RINGBACK_SOCK to the daemon's socket.",
        discussion: """
            sh, bash, zsh: eval "$(ringback env)"
            fish:          ringback env --shell fish | source
            csh:           eval "`ringback env --shell csh`"
            """)

    @Option(help: ArgumentHelp("The shell: sh, bash, zsh, fish or csh.", valueName: "name"))
    var shell = Shell.sh

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let path = try Env.absolute(SocketPlace.path(stated: daemon.socket))
            guard !json.isWanted else { return Output.json(["RINGBACK_SOCK": .string(path)]) }
            guard let line = shell.assignment("RINGBACK_SOCK", path) else {
                throw RingbackError(
                    "no_place", "The socket's path holds a control character, which a shell could misread.")
            }
            Output.line(line)
        }
    }

    /// Makes the path absolute: the shell may change its working directory.
    private static func absolute(_ path: String) throws(RingbackError) -> String {
        guard let path = Path.absolute(path) else {
            throw RingbackError(
                .systemError, "The working directory was deleted. Name the socket by an absolute path.")
        }
        return path
    }
}
