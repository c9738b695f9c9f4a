import RingbackBase
import Testing

@testable import Configuration

@Suite struct `The report on the configuration` {
    @Test func `lists accounts with what to register`() throws {
        let folder = try Folder()
        try folder.write(
            """
            [accounts.work]
            issuer = "https://id.example.org"
            client_id = "c"

            [accounts.fixed]
            issuer = "https://id.example.org"
            client_id = "c"
            client_authentication = "client_secret_basic"
            redirect_uri = "http://localhost:8400/cb"
            """)
        let report = folder.report()
        #expect(report.isValid)
        let accounts = try folder.load().accounts
        #expect(
            accounts.map(\.registration) == [
                "redirect URI to register: http://localhost:8400/cb",
                "redirect URI to register: http://127.0.0.1:{port}/callback/work",
            ])
        #expect(
            accounts.map(\.notes) == [
                [
                    "localhost is bound as 127.0.0.1 and as [::1]; if one of them is taken, the sign-in fails.",
                    "client_secret_basic needs client_secret_file or client_secret_command: set one.",
                ], [],
            ])
        let json = try JSON(parsing: Array(report.json.utf8))
        #expect(json["valid"] == true)
        #expect(json["errors"] == [])
        #expect(
            json["accounts"]?.array?.last == [
                "name": "work", "provider": "oidc",
                "source": ["file": .string("\(folder.path)/config.toml"), "line": 1],
                "redirect_uri": "http://127.0.0.1:{port}/callback/work",
                "registration": "redirect URI to register: http://127.0.0.1:{port}/callback/work", "notes": [],
            ])
    }

    @Test func `lists mistakes as editors read them`() throws {
        let folder = try Folder()
        try folder.write("[accounts.mail]\nprovider = \"google\"\nclient_idd = \"c\"\n")
        let report = folder.report()
        #expect(!report.isValid)
        let file = "\(folder.path)/config.toml"
        let lines = report.errors.map(\.description)
        #expect(lines.count == 1)
        #expect(lines[0] == "\(file):3: accounts.mail.client_idd: unknown key; did you mean client_id?")
        let json = try JSON(parsing: Array(report.json.utf8))
        #expect(json["valid"] == false)
        #expect(json["accounts"] == [])
        let error = json["errors"]?.array?.first
        #expect(error?.object?.names == ["file", "line", "key", "message"])
        #expect(error?["line"] == 3)
    }

    @Test func `says which file others can change, for a program that advises`() throws {
        let folder = try Folder()
        let file = try folder.write("", mode: 0o622)
        let json = try JSON(parsing: Array(folder.report().json.utf8))
        let error = json["errors"]?.array?.first
        #expect(error?.object?.names == ["file", "message", "cause", "path"])
        #expect(error?["cause"] == "writable_by_others" && error?["path"]?.string == file)
    }

    @Test func `leaves out what is not known`() throws {
        let report = try Folder().report()
        let json = try JSON(parsing: Array(report.json.utf8))
        #expect(json["errors"]?.array?.first?.object?.names == ["file", "message"])
    }
}
