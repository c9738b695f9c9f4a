public import RingbackBase

/// The credential helpers of git's configuration: which of them git asks for a server, and the changes that make it ask
/// Ringback alone (gitcredentials(7)). git collects the helpers of all sections that fit the URL, in the order of the
/// configuration. An empty value removes those before it. Each helper is asked until one has a password, and all of
/// them are told to store it.
public struct GitConfiguration: Sendable, Equatable {
    public struct Entry: Sendable, Equatable {
        /// The URL of the section; nil for the section without one.
        public let url: String?
        /// Lower-cased, as git writes it.
        public let name: String
        public let value: String

        public init(url: String?, name: String, value: String) {
            self.url = url
            self.name = name
            self.value = value
        }

        /// Nil for what is no variable of credentials.
        init?(key: String, value: String) {
            guard let first = key.firstIndex(of: "."), let last = key.lastIndex(of: "."), key[..<first] == "credential"
            else { return nil }
            url = first == last ? nil : String(key[key.index(after: first)..<last])
            name = key[key.index(after: last)...].lowercased()
            self.value = value
        }

        public var key: String {
            let shown =
                switch name {
                case GitConfiguration.usesPath: "useHttpPath"
                case GitConfiguration.marker: "ringbackPath"
                default: name
                }
            return "credential." + (url.map { $0 + "." } ?? "") + shown
        }
    }

    /// A change of the user's own file.
    public enum Change: Sendable, Equatable {
        case add(key: String, value: String)
        /// Removes each of the variable's values that is this one.
        case remove(key: String, value: String)
        case removeAll(key: String)
    }

    public struct Standing: Sendable, Equatable {
        public var isAsked = false
        /// Other helpers, which git asks before Ringback.
        public var before: [String] = []
        /// Other helpers, which store the token that Ringback gave.
        public var after: [String] = []
        /// False if Ringback's origin has a path that git does not name.
        public var namesPath = true

        public var isComplete: Bool { isAsked && before.isEmpty && after.isEmpty && namesPath }
    }

    private static let helper = "helper"
    private static let usesPath = "usehttppath"
    /// A variable of our own, which git ignores. It marks a `useHttpPath` that ``changes(for:program:in:)`` wrote.
    private static let marker = "ringbackpath"

    /// In the order of the configuration.
    public private(set) var entries: [Entry]

    /// - Parameter listing: the output of `git config -z --get-regexp`. What is no variable of credentials is left out.
    public init(listing: some Collection<UInt8>) {
        entries = listing.split(separator: 0).compactMap { part in
            let pieces = part.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
            return Entry(
                key: String(decoding: pieces[0], as: UTF8.self),
                value: pieces.count > 1 ? String(decoding: pieces[1], as: UTF8.self) : "")
        }
    }

    /// The helper's value for a program of this path, which a shell reads. Once the program is removed, the helper does
    /// nothing, and git goes on to the ones of ``fallback(to:quoted:)``.
    ///
    /// - Parameter quoted: the path as a word of a shell.
    public static func value(quoted: String) -> String { "!test ! -x \(quoted) || \(quoted) git-credential" }

    private static let fallbackStart = "!test -x "

    /// A helper that git runs as it would run `helper`, once the program of this path is removed. Until then it does
    /// nothing: the other helper neither answers first nor stores Ringback's tokens. Nil for a shell command of more than
    /// plain words: it may have a password in it, which others could read in the arguments of `git config`.
    ///
    /// - Parameter quoted: the path as a word of a shell.
    static func fallback(to helper: String, quoted: String) -> String? {
        let command = helper.hasPrefix("!") ? String(helper.dropFirst()) : nil
        let isPlain = command?.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || " -./0123456789_".utf8.contains(byte)
        }
        guard isPlain != false else { return nil }
        return
            "\(fallbackStart)\(quoted) || \(command ?? (helper.hasPrefix("/") ? helper : "git credential-\(helper)"))"
    }

    /// True for a value that ``fallback(to:quoted:)`` makes of an absolute path of Ringback.
    static func isFallback(_ value: String) -> Bool {
        guard value.hasPrefix(fallbackStart), let end = value.firstRange(of: " || ") else { return false }
        let path = value[..<end.lowerBound].dropFirst(fallbackStart.count)
        return path.hasPrefix("/") && path.hasSuffix("/ringback")
            || path.hasPrefix("'/") && path.hasSuffix("/ringback'")
    }

    /// True for a value that ``value(quoted:)`` makes of an absolute path of Ringback, or made without the test.
    static func isWritten(_ value: String) -> Bool {
        ["", "'"].contains { quote in
            value.hasSuffix("/ringback\(quote) git-credential")
                && (value.hasPrefix("!\(quote)/") || value.hasPrefix("!test ! -x \(quote)/"))
        }
    }

    private static func isOurs(_ value: String) -> Bool { isWritten(value) || isFallback(value) }

    /// True for a helper that is Ringback, whoever wrote it.
    static func isRingback(_ value: String) -> Bool {
        let name = "ringback"
        return isWritten(value) || value == name || value == "!\(name) git-credential"
            || value.hasSuffix("/git-credential-\(name)")
    }

    public func standing(for origin: OriginPattern) -> Standing {
        var helpers: [String] = []
        var usesPath = false
        for entry in entries where GitConfiguration.fits(entry.url, origin) {
            switch entry.name {
            case GitConfiguration.helper:
                if entry.value.isEmpty {
                    helpers = []
                } else if !GitConfiguration.isFallback(entry.value) {
                    helpers.append(entry.value)
                }
            case GitConfiguration.usesPath: usesPath = ["true", "yes", "on", "1"].contains(entry.value.lowercased())
            default: break
            }
        }
        var standing = Standing()
        for helper in helpers {
            if GitConfiguration.isRingback(helper) {
                standing.isAsked = true
            } else if standing.isAsked {
                standing.after.append(helper)
            } else {
                standing.before.append(helper)
            }
        }
        standing.namesPath = origin.segments.isEmpty || usesPath || !origin.scheme.hasPrefix("http")
        return standing
    }

    /// True if git takes the variables of a section for the origin. A section for one user name is not counted: git
    /// takes it only if it knows that name.
    static func fits(_ url: String?, _ origin: OriginPattern) -> Bool {
        guard let url else { return true }
        var rest = url[...]
        if let mark = url.firstRange(of: "://") {
            guard url[..<mark.lowerBound].lowercased() == origin.scheme else { return false }
            rest = url[mark.upperBound...]
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        var host = rest[..<slash].lowercased()
        guard !host.contains("@") else { return false }
        for (scheme, port) in [("https", ":443"), ("http", ":80")] where origin.scheme == scheme && host.hasSuffix(port)
        {
            host.removeLast(port.utf8.count)
        }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        let own = origin.place.split(separator: ".", omittingEmptySubsequences: false)
        guard host.isEmpty || labels.count == own.count && zip(labels, own).allSatisfy({ $0 == "*" || $0 == $1 }) else {
            return false
        }
        return origin.segments.starts(with: rest[slash...].split(separator: "/").map(String.init))
    }

    static func url(of origin: OriginPattern) -> String { String(origin.text.dropLast("/*".count)) }

    public static func isUsable(_ origin: OriginPattern) -> Bool {
        ["https", "http", "smtp", "imap", "imaps"].contains(origin.scheme)
    }

    /// What makes git ask Ringback alone for the servers of these origins, as long as Ringback is installed.
    ///
    /// - Parameters:
    ///   - program: the path of Ringback, as a word of a shell.
    ///   - file: the variables of the user's own file, which is changed. This value has those of all files.
    public func changes(for origins: [OriginPattern], program: String, in file: GitConfiguration) -> [Change] {
        let value = GitConfiguration.value(quoted: program)
        var (all, file, changes) = (self, file, [Change]())
        for origin in origins where GitConfiguration.isUsable(origin) {
            let url = GitConfiguration.url(of: origin)
            // git adds lines to an existing section, which may stand before other helpers. So our old lines are removed
            // first, and the section is made anew at the end.
            let removals = file.removals(of: url)
            var others = all
            removals.forEach { others.apply($0) }
            let standing = others.standing(for: origin)
            var seen: Set<String> = []
            let fallbacks = (standing.before + standing.after).filter { seen.insert($0).inserted }
                .compactMap { GitConfiguration.fallback(to: $0, quoted: program) }
            let ours = file.entries.filter { $0.url == url && GitConfiguration.isOurs($0.value) }.map(\.value)
            let isCurrent = ours.isEmpty || ours == [value] + fallbacks
            guard !isCurrent || !all.standing(for: origin).isComplete else { continue }
            for change in removals {
                changes.append(change)
                file.apply(change)
            }
            all = others
            var added = [Entry]()
            if !standing.isAsked || !standing.before.isEmpty || !standing.after.isEmpty {
                added = (["", value] + fallbacks).map { Entry(url: url, name: GitConfiguration.helper, value: $0) }
            }
            if !standing.namesPath {
                added += [GitConfiguration.usesPath, GitConfiguration.marker].map {
                    Entry(url: url, name: $0, value: "true")
                }
            }
            for entry in added {
                changes.append(.add(key: entry.key, value: entry.value))
                all.entries.append(entry)
                file.entries.append(entry)
            }
        }
        return changes
    }

    /// What removes the values that ``changes(for:program:in:)`` made, of the user's own file, as far as they are there.
    ///
    /// - Parameter origins: only of the sections of these; nil for all.
    public func removals(of origins: [OriginPattern]?) -> [Change] {
        let wanted = origins?.map(GitConfiguration.url)
        var (changes, seen) = ([Change](), Set<String>())
        for url in entries.compactMap(\.url) where wanted?.contains(url) != false && seen.insert(url).inserted {
            changes += removals(of: url)
        }
        return changes
    }

    private func removals(of url: String) -> [Change] {
        helperRemovals(entries.filter { $0.url == url && $0.name == GitConfiguration.helper })
            + pathRemovals(entries.filter { $0.url == url })
    }

    /// - Parameter helpers: those of one section. An empty value directly before a helper of ours is removed too.
    private func helperRemovals(_ helpers: [Entry]) -> [Change] {
        let ours = helpers.indices.filter { GitConfiguration.isOurs(helpers[$0].value) }
        guard let key = helpers.first?.key, !ours.isEmpty else { return [] }
        let kept = helpers.indices.filter { index in
            !ours.contains(index) && !(helpers[index].value.isEmpty && ours.contains(index + 1))
        }
        // Of several empty values git cannot remove one.
        guard !kept.contains(where: { helpers[$0].value.isEmpty }) || !ours.contains(where: { isPair(helpers, $0) })
        else {
            return [.removeAll(key: key)] + kept.map { .add(key: key, value: helpers[$0].value) }
        }
        var changes: [Change] = []
        for (index, entry) in helpers.enumerated() where !kept.contains(index) {
            let change = Change.remove(key: key, value: entry.value)
            if !changes.contains(change) { changes.append(change) }
        }
        return changes
    }

    private func isPair(_ helpers: [Entry], _ index: Int) -> Bool { index > 0 && helpers[index - 1].value.isEmpty }

    private func pathRemovals(_ section: [Entry]) -> [Change] {
        guard let marker = section.first(where: { $0.name == GitConfiguration.marker }) else { return [] }
        let path = section.first { $0.name == GitConfiguration.usesPath && $0.value == "true" }
        return (path.map { [.remove(key: $0.key, value: $0.value)] } ?? []) + [.removeAll(key: marker.key)]
    }

    private mutating func apply(_ change: Change) {
        switch change {
        case .add(let key, let value):
            if let entry = Entry(key: key, value: value) { entries.append(entry) }
        case .remove(let key, let value): entries.removeAll { $0.key == key && $0.value == value }
        case .removeAll(let key): entries.removeAll { $0.key == key }
        }
    }

    /// The servers whose sections have values that ``changes(for:program:in:)`` made.
    public var writtenURLs: [String] {
        var seen: Set<String> = []
        return entries.filter { $0.name == GitConfiguration.helper && GitConfiguration.isWritten($0.value) }
            .compactMap(\.url).filter { seen.insert($0).inserted }
    }
}
