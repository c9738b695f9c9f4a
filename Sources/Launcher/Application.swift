internal import CLinux
internal import DesktopBus
internal import Glibc
internal import Secrets

/// A program that the person is to see: an app of a configured scheme, or the opener of web pages. It is started as a
/// service of the person's own, beside the daemon, so that neither what the daemon gave up nor its end concerns it;
/// where there is no service manager, as nobody's child.
struct Application {
    /// An absolute path or a name in PATH, and what comes after it.
    let words: [String]
    /// For the journal.
    let description: String
    /// What a compositor needs to bring the window of the program forward, where it gave us that.
    var activationToken: String?

    /// The place in a configured command that the link takes.
    static let placeholder = "{url}"
    /// A link is at most this long.
    static let maxURL = 16_384
    /// A token is some bytes of the compositor's own choice.
    private static let maxToken = 512

    /// The configured command of a scheme with the link in its place. Nil if the link is none of that scheme.
    init?(scheme: String, command: [String], url: String) {
        guard !command.isEmpty, Application.isLink(url),
            url.lowercased().hasPrefix(scheme.lowercased() + ":")
        else { return nil }
        words = command.map { $0.replacing(Application.placeholder, with: url) }
        description = "Link of \(scheme)"
    }

    /// The desktop's opener with a page. Nil for anything but a web page: an opener would start a program for
    /// everything else.
    init?(page url: String, activationToken: String? = nil) {
        guard Application.isLink(url) else { return nil }
        let start = url.prefix(8).lowercased()
        guard start.hasPrefix("https://") || start.hasPrefix("http://") else { return nil }
        words = ["xdg-open", url]
        description = "Sign-in page"
        if let token = activationToken, Application.isToken(token) { self.activationToken = token }
    }

    /// One word that no program takes for an option.
    private static func isLink(_ url: String) -> Bool {
        !url.hasPrefix("-") && url.utf8.count <= maxURL && url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    private static func isToken(_ token: String) -> Bool {
        (1...maxToken).contains(token.utf8.count) && token.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Starts it. Blocks for some seconds at most; nil, or why it was not started.
    func start(environment: [String], places: BusRequests.Places) -> String? {
        guard let program = Application.find(words[0], in: environment) else {
            return "was not started: there is no program \(words[0])"
        }
        var environment = environment
        if let activationToken {
            environment += ["XDG_ACTIVATION_TOKEN=\(activationToken)", "DESKTOP_STARTUP_ID=\(activationToken)"]
        }
        let manager = UserManagerClient(place: .session(address: places.session))
        do throws(UserManagerError) {
            let id = String(UInt64.random(in: 0 ... .max), radix: 16)
            try manager.start(
                id: id, description: description, arguments: [program] + words.dropFirst(), environment: environment)
            return nil
        } catch {
            guard error == .unavailable else { return "was not started: \(error.reason)" }
        }
        let home = Application.value(of: "HOME", in: environment) ?? "/"
        let code = unsafe withCStrings([program] + words.dropFirst()) { words in
            unsafe withCStrings(environment) { lines in
                unsafe withCStrings([home, "/"]) { directories in
                    unsafe directories.withMemoryRebound(to: UnsafePointer<CChar>?.self, capacity: 3) {
                        unsafe clinux_start_detached(program, words, lines, $0)
                    }
                }
            }
        }
        return code == 0 ? nil : "could not be started: \(reason(code))"
    }

    /// The program's absolute path, if there is one that may be executed.
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

extension UserManagerError {
    fileprivate var reason: String {
        switch self {
        case .unavailable: "there is no service manager"
        case .failed(let reason): reason
        }
    }
}
