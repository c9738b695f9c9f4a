import ArgumentParser
import CErasedHeap
import Glibc
import RingbackClient
import Terminal

StandardStreams.openClosedOnes()

// Scripts may read an access token a hundred times a minute. Its common forms are recognised by hand; the general
// parser, which uses reflection, handles everything else.
if let options = HotToken.recognize(CommandLine.arguments.dropFirst()) { exit(TokenVerb.run(options)) }
// A caller may ignore it. Then the end of no child could be waited for (waitpid(2)).
signal(SIGCHLD, SIG_DFL)
if let status = RunInside.run(CommandLine.arguments) { exit(status) }
if let status = AdapterProgram.run(CommandLine.arguments) { exit(status) }
let arguments = AdapterProgram.arguments(CommandLine.arguments)
if let page = ShortHelp.page(for: arguments) {
    Output.line(TextWrap.wrappedUsage(page, columns: Console.Stream.output.columns))
    exit(0)
}
if let suggestion = Suggestion.find(in: arguments) {
    suggestion.lines.forEach { Output.note($0) }
    exit(ExitStatus.usage)
}
do {
    var verb = try Ringback.parseAsRoot(arguments)
    do {
        try verb.run()
    } catch let error as RingbackError {
        Failure(error: error, account: (verb as? any AccountNaming)?.subject).show()
        throw ExitCode(ExitStatus.of(error))
    }
} catch {
    // A verb that failed has its status as an `ExitCode`; why it failed has been printed.
    let isUsageMistake = Ringback.exitCode(for: error).rawValue == ExitStatus.usage
    guard !(error is ExitCode), isUsageMistake || Ringback.exitCode(for: error) == .success else {
        Ringback.exit(withError: error)
    }
    let message = Ringback.fullMessage(for: error)
    guard isUsageMistake else {
        // What --help, --version and --generate-completion-script ask for.
        if !message.isEmpty { Output.line(TextWrap.wrappedUsage(message, columns: Console.Stream.output.columns)) }
        exit(0)
    }
    Output.note(UsageMistake.mended(message, arguments))
    exit(ExitStatus.usage)
}
