internal import Glibc
public import RingbackBase

/// Registers and removes scheme handlers of this user, and lists them. The former handler stays in the list after ours,
/// so it has priority again after `unregister`.
public struct SchemeRegistry: Sendable {
    /// `isRepeated`: the same file existed already.
    public typealias Registration = (file: HandlerFile, path: String, isRepeated: Bool)

    /// Why a change was not made; the reason says what to do.
    public struct Failure: Error, Equatable, Sendable {
        public let reason: String
    }

    public let places: DesktopPlaces
    /// Runs a program with a timeout and returns its exit status; nil if it cannot be started.
    private let run: @Sendable ([String]) -> Int32?

    public init(places: DesktopPlaces, run: @escaping @Sendable ([String]) -> Int32?) {
        self.places = places
        self.run = run
    }

    public var search: HandlerSearch { HandlerSearch(places: places, read: FileStore.text) }

    /// The registered schemes, sorted by name.
    public var registered: [HandlerFile] {
        Directory.names(in: places.applications).filter { $0.hasPrefix("ringback-") && $0.hasSuffix(".desktop") }
            .compactMap { FileStore.text(of: "\(places.applications)/\($0)") }.compactMap { HandlerFile(reading: $0) }
            .sorted { $0.scheme < $1.scheme }
    }

    /// Makes `program` the handler of a scheme. Throws ``Failure`` if a file cannot be read or written.
    ///
    /// - Parameters:
    ///   - former: the handler that the desktop has used until now. It is recorded in our file.
    ///   - label: what the account is called in the browser's prompt; nil for its name.
    ///   - isForced: replaces a file of the same name that we did not write.
    public func register(
        _ scheme: URLScheme, program: String, account: String?, label: String? = nil, former: String?,
        isForced: Bool = false
    ) throws(Failure) -> Registration {
        let path = path(of: scheme)
        let known = FileStore.text(of: path)
        let own = known.flatMap { HandlerFile(reading: $0) }
        guard known == nil || own != nil || isForced else {
            throw Failure(reason: "\(path) exists and was not written by ringback. Check it; --force replaces it.")
        }
        let name = HandlerFile.name(for: scheme)
        // If the scheme is registered again, our own file must not be recorded as the former handler.
        let before = former == name ? own?.former : former ?? own?.former
        var file = HandlerFile(scheme: scheme, program: program, account: account ?? own?.account, former: before)
        file.label = label
        try FileStore.makeDirectory(places.applications)
        if known != file.text { try FileStore.write(file.text, to: path) }
        try change(listsFor: scheme) { $0.prefer(name, for: scheme) }
        updateDatabase()
        return (file, path, known == file.text)
    }

    /// Removes our handler of a scheme. Returns what was registered; nil if nothing was. Throws ``Failure``.
    public func unregister(_ scheme: URLScheme) throws(Failure) -> HandlerFile? {
        let path = path(of: scheme)
        let known = FileStore.text(of: path)
        let own = known.flatMap { HandlerFile(reading: $0) }
        guard known == nil || own != nil else {
            throw Failure(reason: "\(path) was not written by ringback. It is left as it is.")
        }
        let name = HandlerFile.name(for: scheme)
        try change(listsFor: scheme) { $0.remove(name, for: scheme) }
        guard let own else { return nil }
        try FileStore.remove(path)
        updateDatabase()
        return own
    }

    private func path(of scheme: URLScheme) -> String { "\(places.applications)/\(HandlerFile.name(for: scheme))" }

    /// Changes the main list and the user's other lists that have a line for the scheme: a desktop's own list has
    /// priority over the main one.
    private func change(listsFor scheme: URLScheme, _ body: (inout MimeAppsList) -> Void) throws(Failure) {
        for path in places.ownLists {
            let text = FileStore.text(of: path)
            // A file that exists but cannot be read must not be overwritten.
            guard text != nil || !FileStore.exists(path) else {
                guard path == places.mainList else { continue }
                throw Failure(reason: "\(path) cannot be read as UTF-8 text of at most 1 MiB. It is left as it is.")
            }
            var list = MimeAppsList(text ?? "")
            guard path == places.mainList || list.defaults(for: scheme) != nil else { continue }
            body(&list)
            guard list.text != text ?? "" else { continue }
            if list.isBlank, !FileStore.isLink(path) {
                try FileStore.remove(path)
            } else {
                try FileStore.makeDirectory(FileStore.directory(of: path))
                try FileStore.write(list.text, to: path)
            }
        }
    }

    /// Updates the desktop database, in which desktops look for types. Without the program the default in the list
    /// still works.
    private func updateDatabase() { _ = run(["update-desktop-database", "-q", places.applications]) }
}
