import RingbackBase
import Testing

@testable import SchemeRegistration

@Suite struct `Who the files name for a scheme` {
    private static let app = "[Desktop Entry]\nType=Application\nExec=/usr/bin/app %u\n"

    private func handler(_ files: [String: String], _ environment: [String: String] = [:]) throws -> String? {
        let variables = ["HOME": "/home/a", "XDG_DATA_DIRS": "/usr/share"].merging(environment) { _, new in new }
        let places = try #require(DesktopPlaces { variables[$0] })
        let search = HandlerSearch(places: places) { files[$0] }
        return search.handler(of: try URLScheme(parsing: "app"))?.path
    }

    private func list(_ handlers: String) -> String { "[Default Applications]\nx-scheme-handler/app=\(handlers)\n" }

    @Test func `the person's choice goes before the system's, and a desktop's before all`() throws {
        var files = [
            "/usr/share/applications/a.desktop": Self.app, "/home/a/.local/share/applications/b.desktop": Self.app,
            "/usr/share/applications/c.desktop": Self.app, "/usr/share/applications/mimeapps.list": list("a.desktop"),
        ]
        #expect(try handler(files) == "/usr/share/applications/a.desktop")
        files["/home/a/.config/mimeapps.list"] = list("gone.desktop;b.desktop;a.desktop;")
        #expect(try handler(files) == "/home/a/.local/share/applications/b.desktop")
        files["/home/a/.config/gnome-mimeapps.list"] = list("c.desktop")
        #expect(try handler(files) == "/home/a/.local/share/applications/b.desktop")
        #expect(try handler(files, ["XDG_CURRENT_DESKTOP": "ubuntu:GNOME"]) == "/usr/share/applications/c.desktop")
    }

    @Test func `without a choice, the desktop database says who is for it`() throws {
        let cache = "[MIME Cache]\ntext/html=x.desktop;\nx-scheme-handler/app=gone.desktop;a.desktop;\n"
        let files = [
            "/usr/share/applications/a.desktop": Self.app, "/usr/share/applications/mimeinfo.cache": cache,
        ]
        #expect(try handler(files) == "/usr/share/applications/a.desktop")
        #expect(try handler([:]) == nil)
        #expect(try handler(["/home/a/.config/mimeapps.list": list("gone.desktop")]) == nil)
    }

    @Test func `a name's dash may be a directory`() throws {
        let files = [
            "/usr/share/applications/kde/org-app.desktop": Self.app,
            "/home/a/.config/mimeapps.list": list("kde-org-app.desktop"),
        ]
        #expect(try handler(files) == "/usr/share/applications/kde/org-app.desktop")
        #expect(
            try handler(["/etc/x": Self.app, "/home/a/.config/mimeapps.list": list("../../../etc/x.desktop")]) == nil)
    }

    @Test func `places are those of the base directory specification`() throws {
        #expect(DesktopPlaces { _ in nil } == nil)
        let variables = [
            "HOME": "/home/a", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "relative", "XDG_CONFIG_DIRS": "/c1:/c2",
            "XDG_CURRENT_DESKTOP": "KDE",
        ]
        let places = try #require(DesktopPlaces { variables[$0] })
        #expect(places.applications == "/d/applications" && places.mainList == "/home/a/.config/mimeapps.list")
        #expect(
            places.allApplications == ["/d/applications", "/usr/local/share/applications", "/usr/share/applications"])
        #expect(
            places.ownLists == [
                "/home/a/.config/kde-mimeapps.list", "/home/a/.config/mimeapps.list",
                "/d/applications/kde-mimeapps.list",
                "/d/applications/mimeapps.list",
            ])
        #expect(places.allLists.contains("/c2/mimeapps.list"))
    }
}
