import Glibc
import RingbackBase

/// Opens a sign-in page in the user's browser. The URL comes from a provider, so it may be hostile: it must be one that
/// a browser only shows (https, or http on loopback), and it is never passed to a shell.
public enum Browser {
    /// Opens the URL by ``Account/browser`` where the account has one, else by the programs named in `BROWSER`, or by
    /// `xdg-open`. False if it may not, or if none starts.
    public static func open(_ url: String, in browser: [String]? = nil) -> Bool {
        guard let pid = start(url, in: browser) else { return false }
        return Subprocess.forget(pid)
    }

    /// As ``open(_:in:)``. Returns the opener's pid, for a caller that waits for its exit status. What it writes goes
    /// to `log`.
    package static func start(
        _ url: String, in browser: [String]? = nil, log: Subprocess.Output = .nothing
    ) -> Int32? {
        guard LoopbackURL.isSafeToOpen(url) else { return nil }
        if let browser {
            return Subprocess.start(PageSettings.command(browser, opening: url), output: log, errors: log)
        }
        // A loop, not a lazy map: reading `first` of a lazy collection calls its closure twice.
        for command in commands(for: url, SocketPlace.variable("BROWSER")) {
            if let pid = Subprocess.start(command, output: log, errors: log) { return pid }
        }
        return nil
    }

    /// The argument vectors to try, in order. `BROWSER` is a list with colons between; in each, words are split at
    /// spaces and `%s` stands for the URL, which is otherwise the last argument; `%%` is a percent sign.
    static func commands(for url: String, _ list: String?) -> [[String]] {
        var commands: [[String]] = []
        for template in list?.split(separator: ":") ?? [] {
            let words = template.split(separator: " ").map(String.init)
            guard !words.isEmpty else { continue }
            let filled = words.map { fill($0, url) }
            commands.append(filled.contains { $0.used } ? filled.map(\.text) : filled.map(\.text) + [url])
        }
        if commands.isEmpty { commands.append(["xdg-open", url]) }
        return commands
    }

    private static func fill(_ word: String, _ url: String) -> (text: String, used: Bool) {
        var text = ""
        var used = false
        var rest = word[...]
        while let character = rest.popFirst() {
            guard character == "%", let next = rest.first else {
                text.append(character)
                continue
            }
            switch next {
            case "s":
                text += url
                used = true
            case "%": text.append("%")
            default: text += "%\(next)"
            }
            rest.removeFirst()
        }
        return (text, used)
    }
}

/// A plain-http URL on loopback, and whether a browser may be sent to a URL.
package struct LoopbackURL: Sendable, Equatable {
    package let host: String
    package let port: UInt16
    package let target: String
    package var isIPv6: Bool { host == "[::1]" }
    package var authority: String { "\(host):\(port)" }

    /// Takes `http://HOST[:PORT]/…` apart; nil unless HOST is loopback's own (127.0.0.1, [::1], localhost).
    package init?(_ url: String) {
        guard url.hasPrefix("http://"), let parsed = try? WebURL(parsing: url), let name = parsed.host,
            ["127.0.0.1", "::1", "localhost"].contains(name), let port = UInt16(exactly: parsed.port ?? 80), port > 0
        else { return nil }
        host = name == "::1" ? "[::1]" : name
        self.port = port
        target = (parsed.path.hasPrefix("/") ? "" : "/") + parsed.path + (parsed.query.map { "?\($0)" } ?? "")
    }

    /// Where a `Location` or a form's action leads from here; nil if it leaves loopback.
    package func following(_ reference: String) -> LoopbackURL? {
        if reference.hasPrefix("/"), !reference.hasPrefix("//") {
            return LoopbackURL("http://\(authority)\(reference)")
        }
        if reference.isEmpty { return self }
        if reference.hasPrefix("?") {
            return LoopbackURL("http://\(authority)\(target.prefix { $0 != "?" })\(reference)")
        }
        return LoopbackURL(reference)
    }

    /// True for https with a host and without user information, and for http on loopback. Names below `localhost` are
    /// loopback (RFC 6761 section 6.3).
    package static func isSafeToOpen(_ url: String) -> Bool {
        guard !url.hasPrefix("https://") else { return (try? WebURL(parsing: url)) != nil }
        guard let host = (try? WebURL(parsing: url))?.host, host.hasSuffix(".localhost"),
            url.hasPrefix("http://\(host)"), host.utf8.allSatisfy({ $0.isLetterOrDigit || "-.".utf8.contains($0) })
        else { return LoopbackURL(url) != nil }
        return LoopbackURL("http://localhost" + url.dropFirst("http://\(host)".count)) != nil
    }
}

/// Starts programs, never through a shell, with default signals and no descriptor of ours but those that are named.
package enum Subprocess {
    package enum Output {
        case inherited
        case nothing
        case descriptor(Int32)
    }

    /// POSIX_SPAWN_SETSID of glibc's <spawn.h>, which the module does not show.
    private static let newSession: Int16 = 0x80

    /// Starts a program in a session of its own (it outlives this one and sees no Ctrl-C). One that `asksUser` stays in
    /// this session, and reads this one's standard input; else that is `input`, or empty. Returns the pid, or nil.
    package static func start(
        _ arguments: [String], output: Output = .inherited, errors: Output = .inherited, environment: [String]? = nil,
        asksUser: Bool = false, input: Int32? = nil
    ) -> Int32? {
        guard let program = arguments.first, !program.isEmpty, !arguments.contains(where: { $0.utf8.contains(0) })
        else { return nil }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if let input {
            unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else if !asksUser {
            unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        for (number, place) in [(Int32(1), output), (2, errors)] {
            switch place {
            case .inherited: break
            case .nothing: unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_WRONLY, 0)
            case .descriptor(let descriptor): unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            }
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        var usual = sigset_t()
        unsafe sigemptyset(&usual)
        for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { unsafe sigaddset(&usual, signal) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &usual)
        let flags = Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | (asksUser ? 0 : newSession)
        unsafe posix_spawnattr_setflags(&attributes, flags)
        var pid: Int32 = 0
        let failure = unsafe withCStrings(arguments) { arguments in
            guard let environment else {
                return unsafe posix_spawnp(&pid, program, &actions, &attributes, arguments, environ)
            }
            return unsafe withCStrings(environment) { variables in
                unsafe posix_spawnp(&pid, program, &actions, &attributes, arguments, variables)
            }
        }
        return failure == 0 ? pid : nil
    }

    /// Reads a child's exit status when it ends: it does not stay a zombie. False if no thread could be started.
    package static func forget(_ pid: Int32) -> Bool { Blocking.start { _ = wait(pid) } == 0 }

    /// Waits for a child's end: its exit status, or 128 and the signal.
    @discardableResult
    package static func wait(_ pid: Int32) -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0 {
            guard errno == EINTR else { return -1 }
        }
        return exitStatus(status)
    }

    /// As ``wait(_:)`` for a child that has ended; nil for one that runs.
    package static func endedStatus(_ pid: Int32) -> Int32? {
        var status: Int32 = 0
        return unsafe waitpid(pid, &status, WNOHANG) == pid ? exitStatus(status) : nil
    }

    private static func exitStatus(_ status: Int32) -> Int32 {
        status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }
}
