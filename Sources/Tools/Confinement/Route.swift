/// How a path leads to a file: its real path, and the symbolic links on the way.
struct Route {
    let end: String
    /// Each by the real path of its folder.
    private(set) var links: [String] = []

    /// As the kernel has it.
    private static let mostLinks = 40

    /// - Parameter path: absolute. Nil if it leads to nothing.
    init?(_ path: String) {
        var (real, rest) = ("", Route.parts(path))
        while let part = rest.popLast() {
            if part == ".." { real = Path.folder(of: real) }
            if part == "." || part == ".." { continue }
            let next = "\(real)/\(part)"
            switch Path(next).kind {
            case .link(let target):
                links.append(next)
                guard links.count <= Route.mostLinks else { return nil }
                if target.hasPrefix("/") { real = "" }
                rest += Route.parts(target)
            case .file, .folder: real = next
            case nil: return nil
            }
        }
        end = real.isEmpty ? "/" : real
    }

    /// The last one first.
    private static func parts(_ path: String) -> [String] { path.split(separator: "/").reversed().map(String.init) }
}
