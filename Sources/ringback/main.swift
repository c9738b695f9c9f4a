import ArgumentParser
import Glibc
import Terminal

StandardStreams.openClosedOnes()

// Reading an access token is what scripts do a hundred times a minute: its common forms are recognised by hand, and
// the general parser, with its reflection, is asked about everything else.
if let options = HotToken.recognize(CommandLine.arguments.dropFirst()) {
    exit(TokenVerb.run(options))
}
let arguments = Array(CommandLine.arguments.dropFirst())
if let suggestion = Suggestion.find(in: arguments) {
    suggestion.lines.forEach { Output.note($0) }
    exit(ExitStatus.usage)
}
do {
    var verb = try Ringback.parseAsRoot(arguments)
    try verb.run()
} catch {
    // A verb that failed has told why, and gives its status as an `ExitCode`.
    guard !(error is ExitCode), Ringback.exitCode(for: error).rawValue == ExitStatus.usage else {
        Ringback.exit(withError: error)
    }
    Output.note(UsageMistake.mended(Ringback.fullMessage(for: error), arguments))
    exit(ExitStatus.usage)
}
