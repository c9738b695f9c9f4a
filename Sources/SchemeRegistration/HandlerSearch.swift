public import HTTPMessages

/// Which handler the files name for a scheme, by the order of the specification: what `xdg-mime query default` says,
/// where that program is not installed. Only files are looked at: what a desktop really does, a link shows.
public struct HandlerSearch: Sendable {
    /// A handler that exists.
    public struct Handler: Equatable, Sendable {
        /// The desktop file id.
        public let name: String
        /// Where its file is.
        public let path: String
        /// What it starts; nil if its `Exec` cannot be read.
        public let program: String?
        /// The scheme's file of this program, if it is one.
        public let ours: HandlerFile?
    }

    private let places: DesktopPlaces
    private let read: @Sendable (String) -> String?

    /// - Parameter read: a file's text; nil if it cannot be had.
    public init(places: DesktopPlaces, read: @escaping @Sendable (String) -> String?) {
        self.places = places
        self.read = read
    }

    /// The handler that is asked first.
    public func handler(of scheme: URLScheme) -> Handler? {
        for list in places.allLists {
            let names = read(list).flatMap { MimeAppsList($0).defaults(for: scheme) } ?? []
            if let found = names.lazy.compactMap({ handler(named: $0) }).first { return found }
        }
        // Without a default, any that says it is for the scheme: what the desktop database gathered.
        for directory in places.allApplications {
            let names = read("\(directory)/mimeinfo.cache").flatMap { HandlerSearch.cached(scheme, in: $0) } ?? []
            if let found = names.lazy.compactMap({ handler(named: $0) }).first { return found }
        }
        return nil
    }

    /// The handler of a desktop file id. In an id, `-` may stand for a directory's `/`.
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
