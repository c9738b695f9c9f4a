import ArgumentParser
import Glibc
import Terminal

struct ConfigVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the configuration.", subcommands: [ConfigCheck.self])
}

struct ConfigCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check the configuration; needs no running daemon.",
        discussion: "Exit status 0: it is valid; 78: it has mistakes, which are listed.")

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @OptionGroup var json: JSONOption

    func run() throws {
        var arguments = [Programs.path("ringbackd"), "--check-config"]
        if let config { arguments += ["--config", config] }
        if json.isWanted { arguments.append("--json") }
        // The daemon's program replaces this one: its output and its exit status are the result.
        var vector = unsafe arguments.map { unsafe strdup($0) }
        unsafe vector.append(nil)
        unsafe execvp(arguments[0], vector)
        Output.note(
            "ringback: \(Sanitizer.line(arguments[0])) cannot be started: install it beside ringback, or in PATH.")
        throw ExitCode(ExitStatus.failed)
    }
}
