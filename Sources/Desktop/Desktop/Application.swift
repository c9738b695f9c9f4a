internal import CLinux
internal import Glibc
internal import RingbackBase

/// A program that the user is to see: the app of a configured scheme, a browser, or the desktop's opener of web pages.
/// It is started as a transient service of the user's service manager, so that it neither inherits the daemon's
/// restrictions nor ends with the daemon. Without a service manager it is started as a detached process.
struct Application {
    /// The argument vector. The first word is an absolute path or a name in PATH.
    let words: [String]
    /// The description of the unit in the journal.
    let description: String
    /// The token that lets the program bring its window to the front (`XDG_ACTIVATION_TOKEN`).
    var activationToken: String?

    /// The maximum length of a link in bytes.
    static let maxURL = 16_384
    /// The maximum length of an activation token in bytes. Compositors choose its content.
    private static let maxToken = 512

    /// The configured command of a scheme with the link in place of `{url}`. Nil if the URL has another scheme or is
    /// unsafe as an argument.
    init?(scheme: String, command: [String], url: String) {
        guard !command.isEmpty, Application.isLink(url), url.lowercased().hasPrefix(scheme.lowercased() + ":") else {
            return nil
        }
        words = command.map { $0.replacing("{url}", with: url) }
        description = "Link of \(scheme)"
    }

    /// A configured browser, or else the desktop's opener, with a web page. Nil for other URLs, for which the opener
    /// would start other programs.
    init?(page url: String, browser: [String]? = nil, activationToken: String? = nil) {
        guard Application.isLink(url) else { return nil }
        let start = url.prefix(8).lowercased()
        guard start.hasPrefix("https://") || start.hasPrefix("http://") else { return nil }
        words = browser.map { PageSettings.command($0, opening: url) } ?? ["xdg-open", url]
        description = "Sign-in page"
        if let token = activationToken, Application.isActivationToken(token) { self.activationToken = token }
    }

    /// True if the URL is one argument that no program can take for an option.
    private static func isLink(_ url: String) -> Bool {
        !url.hasPrefix("-") && url.utf8.count <= maxURL && url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    static func isActivationToken(_ token: String) -> Bool {
        (1...maxToken).contains(token.utf8.count) && token.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Starts the program. Blocks for at most some seconds. Returns nil, or the reason why it was not started.
    func start(environment: [String], places: BusRequests.Places) -> String? {
        guard let program = Application.find(words[0], in: environment) else {
            return "was not started: there is no program \(words[0])"
        }
        var environment = environment
        if let activationToken {
            environment += ["XDG_ACTIVATION_TOKEN=\(activationToken)", "DESKTOP_STARTUP_ID=\(activationToken)"]
        }
        let arguments = [program] + words.dropFirst()
        let manager = UserManagerClient(place: .session(address: places.session))
        do throws(UserManagerError) {
            let id = String(UInt64.random(in: 0 ... .max), radix: 16)
            try manager.start(id: id, description: description, arguments: arguments, environment: environment)
            return nil
        } catch {
            if case .failed(let reason) = error { return "was not started: \(reason)" }
        }
        let home = Application.value(of: "HOME", in: environment) ?? "/"
        let code = unsafe withCStrings(arguments) { words in
            unsafe withCStrings(environment) { lines in
                unsafe withCStrings([home, "/"]) { directories in
                    unsafe directories.withMemoryRebound(to: UnsafePointer<CChar>?.self, capacity: 3) {
                        unsafe clinux_start_apart(program, words, lines, $0, -1, nil, 0)
                    }
                }
            }
        }
        return code == 0 ? nil : "could not be started: \(reason(code))"
    }

    /// The absolute path of the program; nil if there is no executable file of this name.
    static func find(_ name: String, in environment: [String]) -> String? {
        func isProgram(_ path: String) -> Bool {
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
            return unsafe access(path, X_OK) == 0
        }
        if name.contains("/") { return name.hasPrefix("/") && isProgram(name) ? name : nil }
        return (value(of: "PATH", in: environment) ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { $0.hasPrefix("/") && isProgram($0) }
    }

    private static func value(of name: String, in environment: [String]) -> String? {
        environment.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
    }
}
