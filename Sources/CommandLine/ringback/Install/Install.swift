import ArgumentParser
import RingbackClient
import Terminal

struct Install: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Install Ringback in your home directory, without root.",
        discussion: """
            Copies the programs that are beside this one to ~/.local/bin, with manual pages and completions, and the \
            units to ~/.config/systemd/user, and lets systemd listen at the socket: the daemon starts with the first \
            request. Files that ringback install did not write are not replaced. --undo ends the daemon and removes \
            exactly what was installed; accounts and sessions stay, and it says where. With --purge sessions and their \
            keys are removed too, after a question.
            """)

    @Option(help: ArgumentHelp("Install below this directory instead of ~/.local.", valueName: "directory"))
    var prefix: String?

    @Flag(help: "Remove what was installed.")
    var undo = false

    @Flag(help: "With --undo: remove sessions and keys too, after a question.")
    var purge = false

    func validate() throws {
        guard undo || !purge else { throw ValidationError("--purge belongs to --undo.") }
        if undo, prefix != nil { throw ValidationError("--undo knows the prefix: leave --prefix out.") }
        if prefix?.isEmpty == true { throw ValidationError("--prefix needs a directory.") }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let places = try InstallPlaces(prefix: prefix)
            if undo { try Removal(places, purges: purge).run() } else { try Installation(places).run() }
        }
    }
}
