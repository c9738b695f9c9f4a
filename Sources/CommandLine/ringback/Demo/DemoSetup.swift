import Glibc
import RingbackAPI
import RingbackClient

/// The demo's private directory, and the daemon and the provider in it. At the end the processes are ended first, by
/// their own pids, then the directory is removed.
final class DemoSetup {
    let directory: String
    var socket: String { directory + "/ringback.sock" }
    var pids: [Int32] { children.map(\.pid) }

    private let interruption: Interruption
    private var children: [(name: String, pid: Int32)] = []
    /// The provider's standard output, which is kept open.
    private var sandboxOutput: Pipe?

    init(_ interruption: Interruption) throws(RingbackError) {
        self.interruption = interruption
        // Short, since a socket's path has 107 bytes at most.
        let variable = SocketPlace.variable("TMPDIR") ?? ""
        let parent = variable.hasPrefix("/") && variable.utf8.count < 64 ? variable : "/tmp"
        var template = Array("\(parent)/ringback-demo.XXXXXX".utf8CString)
        // The directory gets mode 0700 and an unpredictable name.
        guard unsafe mkdtemp(&template) != nil else {
            throw DemoSetup.failure("No temporary directory can be made in \(parent).")
        }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Starts the provider. Returns its URL, which is also its issuer.
    func startSandbox(user: String) throws(RingbackError) -> String {
        let pipe = try Pipe()
        sandboxOutput = pipe
        try start(
            "ringback-sandbox", ["--port", "0", "--user", user, "--auto-approve"], output: .descriptor(pipe.writeEnd))
        pipe.closeWriteEnd()
        let end = ContinuousClock.now + .seconds(20)
        var text = ""
        while !text.contains("\n") {
            guard let piece = pipe.read(until: end, interruption), !piece.isEmpty, text.utf8.count < 4_096 else {
                throw DemoSetup.failure("ringback-sandbox did not say where it listens.")
            }
            text += String(decoding: piece, as: UTF8.self)
        }
        let words = text.prefix { $0 != "\n" }.split(separator: " ")
        guard words.dropLast() == ["listening", "on"], let url = words.last.map(String.init),
            let place = LoopbackURL(url), place.target == "/"
        else { throw DemoSetup.failure("ringback-sandbox's first line is not “listening on http://127.0.0.1:PORT”.") }
        return "http://\(place.authority)"
    }

    /// Starts the daemon and waits until it responds.
    func startDaemon(_ configuration: String) throws(RingbackError) -> DaemonStatus {
        let file = directory + "/config.toml"
        // The vault's key is in the demo's directory too, so that nothing is left in the user's own directories.
        let vault = "[vault]\nkey_source = \"key-file\"\nkey_directory = \"\(directory)/keys\"\n"
        try write(configuration + vault, to: file)
        try start("ringbackd", ["--config", file, "--socket", socket, "--state", directory + "/state"], output: nil)
        let calls = self.calls
        let end = ContinuousClock.now + .seconds(20)
        while true {
            do throws(RingbackError) {
                return try DaemonStatus(reading: try calls.call(.getStatus, timeout: .seconds(5)))
            } catch {
                guard error.kind == .noDaemon, ContinuousClock.now < end else { throw error }
            }
            if let child = children.last, let status = Subprocess.endedStatus(child.pid) {
                children.removeLast()
                throw DemoSetup.failure("ringbackd ended with status \(status) before it responded.")
            }
            if interruption.wait(atMost: .milliseconds(20)) { throw RingbackError(.cancelled, "Interrupted.") }
        }
    }

    var calls: BrokerCalls { BrokerCalls(socket: socket, application: "ringback demo", interruption: interruption) }

    /// Ends the processes and removes the directory.
    ///
    /// - Throws: if one of them did not end by itself, with status 0, when it was asked to.
    func end() throws(RingbackError) {
        var problem: RingbackError?
        // The daemon first: it may have revocations to send to the provider.
        while let child = children.popLast() {
            kill(child.pid, SIGTERM)
            let end = ContinuousClock.now + .seconds(6)
            var status = Subprocess.endedStatus(child.pid)
            while status == nil, ContinuousClock.now < end {
                poll(nil, 0, 10)
                status = Subprocess.endedStatus(child.pid)
            }
            if status == nil {
                kill(child.pid, SIGKILL)
                Subprocess.wait(child.pid)
                problem = DemoSetup.failure("\(child.name) had to be killed: it did not end within 6 s of SIGTERM.")
            } else if status != 0 {
                problem = DemoSetup.failure("\(child.name) ended with status \(status ?? -1).")
            }
        }
        FileTree.remove(directory)
        if let problem { throw problem }
    }

    /// The last lines of the processes' logs, to explain a failure.
    var lastLogLines: [String] {
        ["ringback-sandbox", "ringbackd"].flatMap { name in
            let lines = FileTree.lastLines(of: "\(directory)/\(name).log", 5)
            return lines.isEmpty ? [] : ["\(name) said last:"] + lines.map { "  " + $0 }
        }
    }

    private func start(_ name: String, _ arguments: [String], output: Subprocess.Output?) throws(RingbackError) {
        let log = unsafe open("\(directory)/\(name).log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard log >= 0 else { throw DemoSetup.failure("No log can be written in \(directory).") }
        defer { close(log) }
        let pid = Subprocess.start(
            [Programs.path(name)] + arguments, output: output ?? .descriptor(log), errors: .descriptor(log))
        guard let pid else {
            throw DemoSetup.failure("\(name) cannot be started: it should be beside ringback, or in PATH.")
        }
        children.append((name, pid))
    }

    private func write(_ text: String, to path: String) throws(RingbackError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        let bytes = Array(text.utf8)
        guard file >= 0, unsafe Glibc.write(file, bytes, bytes.count) == bytes.count, close(file) == 0 else {
            throw DemoSetup.failure("\(path) cannot be written.")
        }
    }

    static func failure(_ text: String) -> RingbackError { RingbackError("demo_failed", text) }
}
