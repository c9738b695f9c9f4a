import Glibc

/// Opens a sign-in page in the user's browser. The URL comes from a provider, so it may be hostile: it must be one that
/// a browser only shows (https, or http on loopback), and it is never passed to a shell.
public enum Browser {
    /// Opens the URL by the programs named in `BROWSER`, or by `xdg-open`. Does not wait for the page.
    ///
    /// - Returns: false if the URL may not be opened, or no program could be started.
    public static func open(_ url: String) -> Bool {
        guard let pid = start(url) else { return false }
        return Subprocess.forget(pid)
    }

    /// As ``open(_:)``. Returns the opener's pid, for a caller that waits for its exit status.
    package static func start(_ url: String) -> Int32? {
        guard LoopbackURL.isSafeToOpen(url) else { return nil }
        // A loop, not a lazy map: reading `first` of a lazy collection calls its closure twice.
        for command in commands(for: url, SocketPlace.variable("BROWSER")) {
            if let pid = Subprocess.start(command, output: .nothing, errors: .nothing) { return pid }
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
