public import HTTPMessages

/// Finds the handler of a scheme in the files, in the order of the specification, as `xdg-mime query default` does. A
/// desktop may behave differently; only opening a link shows that.
public struct HandlerSearch: Sendable {
    /// A handler whose file exists.
    public struct Handler: Equatable, Sendable {
        /// The desktop file id.
        public let name: String
        /// The path of its file.
        public let path: String
        /// The program that it starts; nil if its `Exec` cannot be parsed.
        public let program: String?
        /// Its content if it is a handler file of Ringback.
        public let ours: HandlerFile?
    }

    private let places: DesktopPlaces
    private let read: @Sendable (String) -> String?

    /// - Parameter read: returns a file's text; nil if it cannot be read.
    public init(places: DesktopPlaces, read: @escaping @Sendable (String) -> String?) {
        self.places = places
        self.read = read
    }

    /// The handler with the highest priority.
    public func handler(of scheme: URLScheme) -> Handler? {
        for list in places.allLists {
            let names = read(list).flatMap { MimeAppsList($0).defaults(for: scheme) } ?? []
            if let found = names.lazy.compactMap({ handler(named: $0) }).first { return found }
        }
        // Without a default, the first handler in the desktop database that declares the scheme.
        for directory in places.allApplications {
            let names = read("\(directory)/mimeinfo.cache").flatMap { HandlerSearch.cached(scheme, in: $0) } ?? []
            if let found = names.lazy.compactMap({ handler(named: $0) }).first { return found }
        }
        return nil
    }

    /// The handler with a desktop file id. In an id, a directory's `/` is written as `-`.
    public func handler(named name: String) -> Handler? {
        guard !name.contains("/"), name.hasSuffix(".desktop") else { return nil }
        var spellings = [name]
        for (index, character) in zip(name.indices, name) where character == "-" {
            spellings.append(name[..<index].replacing("-", with: "/") + "/" + name[name.index(after: index)...])
        }
        for directory in places.allApplications {
            for spelling in spellings {
                guard let text = read("\(directory)/\(spelling)") else { continue }
                let file = DesktopFile(reading: text)
                return Handler(
                    name: name, path: "\(directory)/\(spelling)", program: file.arguments?.first,
                    ours: HandlerFile(reading: text))
            }
        }
        return nil
    }

    private static func cached(_ scheme: URLScheme, in text: String) -> [String]? {
        let beginning = "\(DesktopFile.typePrefix)\(scheme)="
        let line = DesktopFile.lines(of: text).first { $0.hasPrefix(beginning) }
        return line?.dropFirst(beginning.count).split(separator: ";").map(String.init)
    }
}
