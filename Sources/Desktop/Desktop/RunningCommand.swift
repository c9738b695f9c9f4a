internal import CLinux
internal import Glibc
public import RingbackBase

/// A running `client_secret_command` and its result: its output, or an error text that contains none of the output.
struct RunningCommand {
    struct Bounds: Sendable {
        /// The maximum size of the output in bytes.
        var maxOutput = 65_536
        /// The maximum time. Users may have to type a passphrase meanwhile.
        var time: Duration = .seconds(60)
    }

    typealias End = HelperProcess.Answer

    let request: Int
    let process: pid_t
    let deadline: SuspendingClock.Instant
    private let bounds: Bounds
    /// The reading end of its standard output; -1 after end of file.
    private(set) var descriptor: Int32
    private var output: [UInt8] = []
    private static let chunk = 16_384
    /// True when the process was reaped; its id may then be reused.
    private(set) var isReaped = false
    /// The time until the process is checked again: `poll` does not report the end of a process.
    private(set) var nextCheck = Duration.milliseconds(100)

    /// Starts the command in a process group of its own. Its input is empty, its standard error is ours.
    init(request: Int, command: [String], environment: [String], bounds: Bounds) throws(Spawn.Failure) {
        guard let program = command.first else { throw Spawn.Failure(code: EINVAL) }
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Spawn.Failure(code: errno) }
        defer { close(ends[1]) }
        for end in ends { closeOnExec(end) }
        let spawn = Spawn(
            program: program, arguments: command, environment: environment, descriptor: ends[1], target: 1,
            hasEmptyInput: true, leadsGroup: true
        )
        do throws(Spawn.Failure) {
            process = try spawn.start()
        } catch {
            close(ends[0])
            throw error
        }
        self.request = request
        self.bounds = bounds
        deadline = .now.advanced(by: bounds.time)
        descriptor = ends[0]
        // Reserves the maximum at once: an array that grows would leave copies of a secret in memory.
        output.reserveCapacity(bounds.maxOutput + RunningCommand.chunk)
        setNonBlocking(descriptor)
    }

    /// Reads what the command has written. Kills it if that is too much.
    mutating func readOutput() -> End? {
        var buffer = [UInt8](repeating: 0, count: RunningCommand.chunk)
        defer { erase(&buffer) }
        while descriptor >= 0 {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                if code == EAGAIN { return nil }
            }
            guard count > 0 else {
                closeOutput()
                // Most programs end a moment after they close their output.
                nextCheck = .milliseconds(1)
                return nil
            }
            output.append(contentsOf: buffer[0..<count])
            if output.count > bounds.maxOutput { return abandon("printed more than \(bounds.maxOutput) bytes") }
        }
        return nil
    }

    /// Checks whether the process has ended. Descendants that keep its output open are not waited for.
    mutating func look() -> End? {
        var status: Int32 = 0
        let found = unsafe waitpid(process, &status, WNOHANG)
        if found < 0, errno != EINTR {
            isReaped = true
            return abandon("was lost")
        }
        if found == process {
            isReaped = true
            if let end = readOutput() { return end }
            closeOutput()
            return conclusion(status)
        }
        if SuspendingClock.now >= deadline {
            return abandon("did not finish within \(bounds.time.components.seconds) s")
        }
        if descriptor < 0 { nextCheck = min(nextCheck * 2, .milliseconds(100)) }
        return nil
    }

    /// Kills the process group and erases the output. The caller reaps the process, unless ``isReaped``.
    mutating func abandon(_ reason: String) -> End {
        if !isReaped || descriptor >= 0 { kill(-process, SIGKILL) }
        closeOutput()
        erase(&output)
        return .failure(.commandFailed(reason: reason))
    }

    private mutating func conclusion(_ status: Int32) -> End {
        defer { erase(&output) }
        let signal = status & 0x7F
        guard signal == 0 else { return .failure(.commandFailed(reason: "was ended by signal \(signal)")) }
        let code = (status >> 8) & 0xFF
        guard code == 0 else { return .failure(.commandFailed(reason: "exited with status \(code)")) }
        let count = (output.lastIndex { $0 != 0x0A && $0 != 0x0D } ?? -1) + 1
        guard count > 0 else { return .failure(.commandFailed(reason: "printed nothing")) }
        return .success(HelperMessage(secret: Secret(bytes: output[..<count])))
    }

    private mutating func closeOutput() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}

/// A `ringback-relay` that serves an exposed socket: a child of the helper. It ends when the daemon's end of its socket is
/// closed.
public struct Companion: Sendable {
    /// The daemon's end: blocking, and close-on-exec.
    public let socket: Int32
    private let pidfd: Int32

    /// With the process id that the helper told.
    init(process: Int32, socket: Int32) {
        self.socket = socket
        pidfd = clinux_open_process(process)
    }

    /// It does not listen any more when this returns.
    public func kill() { _ = clinux_signal_process(pidfd, SIGKILL) }

    /// Kills it and closes the socket.
    public func end() {
        kill()
        if pidfd >= 0 { close(pidfd) }
        close(socket)
    }
}

extension HelperConnection {
    /// Starts the relay of an exposed socket, which asks the daemon at this socket for tokens. Throws
    /// ``HelperError/programFailed(reason:)`` if it could not be started.
    public func startRelay(daemon: String) async throws(HelperError) -> Companion {
        let near: Int32
        let far: Int32
        do throws(Spawn.Failure) { (near, far) = try socketPair() } catch {
            throw .notStarted(reason: reason(error.code))
        }
        defer { close(far) }
        do throws(HelperError) {
            let answer = try await start(["do": "start_relay", "daemon": daemon], descriptor: far)
            guard let process = answer.members["process"]?.integer.flatMap({ Int32(exactly: $0) }) else { throw .ended }
            return Companion(process: process, socket: near)
        } catch {
            close(near)
            throw error
        }
    }
}

// Programs that the user is to see, through the helper. The daemon names a scheme or a web page; the configuration and
// the desktop decide which program is run.
extension HelperConnection {
    /// A service manager takes some steps, each with a timeout of a few seconds.
    private static let timeout: Duration = .seconds(30)

    /// Starts the program that is configured for the scheme, with the URL in place of `{url}`: as a transient service
    /// of the user's service manager, or as a detached process where there is none. Returns when the program runs.
    /// Throws ``HelperError/programFailed(reason:)`` if it could not be started.
    public func startApplication(scheme: String, url: Secret) async throws(HelperError) {
        try await start(["do": "start_application", "scheme": scheme], url)
    }

    /// Opens an `http` or `https` page with the account's configured browser, or else with the desktop's opener
    /// (`xdg-open`). Returns when the program runs; whether the page was shown is unknown. Throws
    /// ``HelperError/programFailed(reason:)`` if it could not be started.
    ///
    /// - Parameter activationToken: lets the opened window come to the front; from an action of a notification.
    public func openPage(
        url: String, of account: String? = nil, activationToken: String? = nil
    ) async throws(HelperError) {
        try await start(["do": "open_page", "account": account, "activation_token": activationToken], Secret(url))
    }

    fileprivate func start(
        _ members: JSONObject, secret: Secret? = nil, descriptor: Int32? = nil
    ) async throws(HelperError) -> HelperMessage {
        do throws(HelperError) {
            return try await request(members, secret: secret, descriptor: descriptor, timeout: HelperConnection.timeout)
        } catch {
            guard case .commandFailed(let reason) = error else { throw error }
            throw .programFailed(reason: reason)
        }
    }

    private func start(_ members: JSONObject, _ url: Secret) async throws(HelperError) {
        guard url.count <= Application.maxURL else {
            throw .programFailed(reason: "was not started: the URL is longer than \(Application.maxURL) bytes")
        }
        let answer = try await start(members, secret: url)
        guard answer.members["started"]?.bool == true else {
            throw .programFailed(reason: answer.members["reason"]?.string ?? "was not started")
        }
    }
}

/// The environment of the programs that we start: where the user's files and desktop are. Variables that change how
/// programs are loaded, traced or connected (`LD_*`, proxies, `SSLKEYLOGFILE`) are removed, and so are unknown ones,
/// which may hold secrets.
enum CleanEnvironment {
    private static let kept: Set<String> = [
        "PATH", "HOME", "USER", "LANG", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK",
        "GPG_TTY", "GNUPGHOME", "PASSWORD_STORE_DIR",
    ]

    /// In addition for the helper: the address of the system bus, where logind is. Commands do not need it.
    private static let keptForHelper: Set<String> = ["DBUS_SYSTEM_BUS_ADDRESS"]

    /// In addition for programs with windows: how to connect to the user's desktop and which one it is; openers choose
    /// by that.
    private static let keptForApplications: Set<String> = [
        "XAUTHORITY", "BROWSER", "LANGUAGE", "SHELL", "LOGNAME", "DESKTOP_SESSION", "KDE_FULL_SESSION",
        "KDE_SESSION_VERSION", "GNOME_DESKTOP_SESSION_ID", "TZ",
    ]

    /// `NAME=value` lines.
    static func current(forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var lines: [String] = []
        var next = unsafe environ
        while let line = unsafe next.pointee {
            lines.append(unsafe String(cString: line))
            unsafe next += 1
        }
        return clean(lines, forHelper: forHelper, forApplications: forApplications)
    }

    /// Filters the lines. Without a PATH the usual one is added, so that programs can be found by name.
    static func clean(_ lines: [String], forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var result = lines.filter { line in
            guard let equals = line.firstIndex(of: "=") else { return false }
            let name = line[..<equals]
            return kept.contains(String(name)) || name.hasPrefix("XDG_")
                || forHelper && keptForHelper.contains(String(name))
                // The helper passes these variables on.
                || (forHelper || forApplications)
                    && (keptForApplications.contains(String(name)) || name.hasPrefix("LC_"))
        }
        if !result.contains(where: { $0.hasPrefix("PATH=") }) { result.append("PATH=/usr/local/bin:/usr/bin:/bin") }
        return result
    }
}
