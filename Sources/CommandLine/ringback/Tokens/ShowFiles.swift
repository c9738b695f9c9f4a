import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct ShowFiles: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "files", abstract: "List the files in which the daemon keeps tokens.",
        discussion: "Exit status 1: one of them has a problem.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var hasProblem = false
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.listKeptFiles)
            let files = answer["files"]?.array ?? []
            hasProblem = files.contains { $0["detail"]?.string != nil }
            guard !json.isWanted else { return Output.json(answer) }
            guard !files.isEmpty else {
                return Output.note("No files are kept. The configuration has no table [[file]].")
            }
            var table = Table(columns: ["FILE", "ACCOUNT", "FORMAT", "STATE", "VALID"])
            for file in files {
                let end = file["expires_at"]?.integer
                let isKept = file["state"]?.string == "kept"
                table.add([
                    file["path"]?.string ?? "", file["account"]?.string ?? "", file["format"]?.string ?? "",
                    (file["state"]?.string ?? "").replacing("_", with: " "),
                    isKept ? TimeText.validity(until: end, now: TimeText.now()) : "",
                ])
            }
            Output.table(table)
            for file in files {
                guard let detail = file["detail"]?.string else { continue }
                Output.note(Sanitizer.line(detail, limit: 4_000))
            }
        }
        if hasProblem { throw ExitCode(ExitStatus.failed) }
    }
}
