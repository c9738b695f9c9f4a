import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct AccountEdit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Edit the file that defines an account, and check it before it takes effect.",
        discussion: """
            Opens a copy of the file in $VISUAL, $EDITOR or vi. The file is replaced only if the daemon's own check finds no \
            mistake in the copy; otherwise the mistakes are shown and the copy can be edited again.
            """)

    @Argument(help: "The account's name.", completion: Completions.accounts)
    var name: String

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: name) { () throws(RingbackError) in
            let file = try place()
            let editor = try editor(for: file)
            let draft = try DraftFile(of: file)
            defer { draft.discard() }
            let written = try draft.text()
            while true {
                try edit(draft, by: editor)
                guard try draft.text() != written else { return Output.note("Nothing was changed.") }
                if try isGood(draft) { break }
                guard Console.Stream.input.isTerminal, Prompt.confirm("Edit it again?") else {
                    var error = RingbackError(
                        .invalidConfiguration, "\(draft.original) was not changed: your text has the mistakes above.")
                    error.advice = "Run: \(shown: "ringback account edit \(name)")"
                    throw error
                }
            }
            try draft.replaceOriginal()
            Output.line("Changed \(draft.original)")
            try daemon.calls().reloadIfRunning()
        }
    }

    /// The file that defines the account.
    private func place() throws(RingbackError) -> String {
        do throws(RingbackError) {
            let report = try ConfigurationCheck.run(config: config, candidate: nil)
            guard let source = AccountSource(of: name, in: report) else {
                throw UnknownAccount.error(name, in: report)
            }
            return source.file
        } catch {
            // A file with a mistake can still be edited, if it is the one that `account add` writes.
            let file = try AccountFile(name: name, configuration: config)
            guard error.kind == .invalidConfiguration, file.exists else { throw error }
            for line in Failure.mistakes(error.problem?.extensions["errors"]) { Output.note(line) }
            return file.path
        }
    }

    /// The words of the editor's command. Without a terminal vi would wait for ever.
    private func editor(for file: String) throws(RingbackError) -> [String] {
        let stated = ["VISUAL", "EDITOR"].compactMap { SocketPlace.variable($0) }.first { !$0.isEmpty }
        guard stated != nil || (Console.Stream.input.isTerminal && Console.Stream.output.isTerminal) else {
            throw RingbackError(
                .validationFailed,
                "No editor is named, and there is no terminal for vi. Set EDITOR; or change "
                    + "\(Sanitizer.line(file, limit: 400)), and run: ringback reload")
        }
        return (stated ?? "vi").split(separator: " ").map(String.init)
    }

    private func edit(_ draft: DraftFile, by editor: [String]) throws(RingbackError) {
        let command = ChildCommand()
        switch command.start(editor + [draft.path]) {
        case .failure(let failure):
            throw RingbackError(
                .systemError,
                "The editor \(Sanitizer.line(editor.first ?? "")) cannot be started: "
                    + "\(unsafe String(cString: strerror(failure.code))). Set EDITOR.")
        case .success(let pid):
            let status = command.wait(for: pid) { _, _ in }
            guard status == 0 else {
                throw RingbackError(.cancelled, "The editor ended with status \(status). Nothing was changed.")
            }
        }
    }

    /// Checks the copy as if it had replaced the file, and shows its mistakes.
    private func isGood(_ draft: DraftFile) throws(RingbackError) -> Bool {
        do throws(RingbackError) {
            _ = try ConfigurationCheck.run(config: config, replacing: draft.named, with: draft.path)
            return true
        } catch {
            guard error.kind == .invalidConfiguration else { throw error }
            for line in Failure.mistakes(error.problem?.extensions["errors"]) { Output.note(line) }
            return false
        }
    }
}

/// A copy of a configuration file, beside it, that is edited and then takes its place.
struct DraftFile {
    /// The file as it was named; may be a symbolic link.
    let named: String
    /// A copy beside the file that is replaced. That file is never a symbolic link: a rename would replace the link.
    private let copy: CandidateFile
    private let mode: mode_t

    init(of file: String) throws(RingbackError) {
        named = file
        guard let resolved = unsafe realpath(file, nil) else { throw CandidateFile.failure("read", file) }
        defer { unsafe free(resolved) }
        copy = unsafe CandidateFile(for: String(cString: resolved))
        var status = stat()
        guard unsafe stat(copy.original, &status) == 0 else { throw CandidateFile.failure("read", copy.original) }
        mode = status.st_mode & 0o777
        try copy.write(try DraftFile.bytes(of: copy.original))
    }

    var original: String { copy.original }
    var path: String { copy.path }

    func text() throws(RingbackError) -> [UInt8] { try DraftFile.bytes(of: path) }

    /// The copy replaces the file, durably and with the file's mode.
    func replaceOriginal() throws(RingbackError) { try copy.keep(replacing: true, mode: mode) }

    func discard() { copy.discard() }

    /// All bytes of a file.
    static func bytes(of path: String) throws(RingbackError) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw CandidateFile.failure("read", path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(file, &buffer, buffer.count)
            guard count >= 0 else { throw CandidateFile.failure("read", path) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }
}
