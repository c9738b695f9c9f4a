internal import Glibc
public import HTTPMessages

/// The scheme handlers of this person: files that are written, restored and listed. Nothing is taken from another
/// program for good: who was asked before stays behind us in the list, and is asked again when we go.
public struct SchemeRegistry: Sendable {
    /// What a registration has done.
    public struct Registration: Equatable, Sendable {
        public let file: HandlerFile
        public let path: String
        /// True if the file was there already, as it is now.
        public let isRepeated: Bool
    }

    /// Why something was not done: a sentence with what to do next.
    public struct Failure: Error, Equatable, Sendable {
        public let reason: String
    }

    public let places: DesktopPlaces
    /// Runs a program to its end, bounded; nil if it cannot be started.
    private let run: @Sendable ([String]) -> Int32?

    public init(places: DesktopPlaces, run: @escaping @Sendable ([String]) -> Int32?) {
        self.places = places
        self.run = run
    }

    /// What the files say.
    public var search: HandlerSearch { HandlerSearch(places: places, read: FileStore.text) }

    /// The schemes that were registered, by name.
    public var registered: [HandlerFile] {
        FileStore.names(in: places.applications).filter { $0.hasPrefix("ringback-") && $0.hasSuffix(".desktop") }
            .compactMap { FileStore.text(of: "\(places.applications)/\($0)") }.compactMap { HandlerFile(reading: $0) }
            .sorted { $0.scheme < $1.scheme }
    }

    /// Makes `program` the handler of a scheme.
    ///
    /// - Parameters:
    ///   - former: the handler that the desktop would have started until now, to be told and remembered.
    ///   - isForced: replaces a file of the same name that we did not write.
    public func register(
        _ scheme: URLScheme, program: String, account: String?, former: String?, isForced: Bool = false
    ) throws(Failure) -> Registration {
        let path = path(of: scheme)
        let known = FileStore.text(of: path)
        let own = known.flatMap { HandlerFile(reading: $0) }
        guard known == nil || own != nil || isForced else {
            throw Failure(
                reason: "\(path) is there, and was not written by ringback. Look at it; --force replaces it.")
        }
        let name = HandlerFile.name(for: scheme)
        // Registering twice must not make us our own predecessor.
        let before = former == name ? own?.former : former ?? own?.former
        let file = HandlerFile(scheme: scheme, program: program, account: account ?? own?.account, former: before)
        try FileStore.makeDirectory(places.applications)
        if known != file.text { try FileStore.write(file.text, to: path) }
        try change(listsFor: scheme) { $0.prefer(name, for: scheme) }
        updateDatabase()
        return Registration(file: file, path: path, isRepeated: known == file.text)
    }

    /// Takes our handler of a scheme away.
    ///
    /// - Returns: what was registered; nil if nothing was.
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

    /// The main list, and those others of the person's that say something of the scheme: a desktop's own list goes
    /// before the main one.
    private func change(listsFor scheme: URLScheme, _ body: (inout MimeAppsList) -> Void) throws(Failure) {
        for path in places.ownLists {
            let text = FileStore.text(of: path)
            // What cannot be read must not be taken for nothing, and written over.
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

    /// Desktops that look for a type in the database find it; where the program is missing, the default still counts.
    private func updateDatabase() { _ = run(["update-desktop-database", "-q", places.applications]) }
}
