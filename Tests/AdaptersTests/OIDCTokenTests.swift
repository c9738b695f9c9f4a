import Testing

@testable import Adapters

/// What oidc-token 4.2.6 did with the same words, by hand and in `the real oidc-token` of the house tests.
@Suite struct `The command line of oidc-token` {
    private let facts = OIDCToken.Facts(token: "at.x-y", issuer: "https://id.example.org/", expiresAt: 1_795_388_040)

    private func answer(_ words: String) throws -> String {
        let arguments = words.split(separator: " ").map(String.init)
        return String(decoding: try OIDCToken(arguments).answer(facts), as: UTF8.self)
    }

    private static let outputs: [(String, String)] = [
        ("work", "at.x-y\n"), ("-o work", "at.x-y\n"), ("-e work", "1795388040\n"),
        ("-i work", "https://id.example.org/\n"),
        ("-a work", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        ("work -a", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        ("-eX work -a", "at.x-y\nhttps://id.example.org/\n1795388040\n"),
        (
            "-c work",
            "OIDC_AT=at.x-y; export OIDC_AT;\nOIDC_ISS=https://id.example.org/; export OIDC_ISS;\n"
                + "OIDC_EXP=1795388040; export OIDC_EXP;\n"
        ),
        // The rest of the word is the variable's name.
        ("-oie work", "ie=at.x-y; export ie;\n"), ("-eX work", "X=1795388040; export X;\n"),
        (
            "-iX -e work",
            "X=https://id.example.org/; export X;\nOIDC_EXP=1795388040; export OIDC_EXP;\n"
        ),
        ("--issuer=ISS work", "ISS=https://id.example.org/; export ISS;\n"),
        ("--token=T --expires-at work", "T=at.x-y; export T;\nOIDC_EXP=1795388040; export OIDC_EXP;\n"),
        ("--id-token -c work", "at.x-y\n"), ("-- work", "at.x-y\n"), ("--name=n --seccomp work", "at.x-y\n"),
    ]

    @Test(arguments: outputs) func `prints what that program prints`(words: String, expected: String) throws {
        #expect(try answer(words) == expected)
    }

    @Test func `reads what is asked for`() throws {
        let read = try OIDCToken([
            "-fs", "email", "--scope=a b", "--tim=5", "--aud", "x", "-t60", "https://id.example.org",
        ])
        #expect(read.scope == "email a b" && read.minValid == 60 && read.audience == "x" && read.isForced)
        #expect(read.account == .issuer("https://id.example.org") && read.page == nil)
        #expect(try OIDCToken(["work"]).account == .name("work"))
        #expect(try OIDCToken(["--id-token", "work"]).isIDToken)
        #expect(try [["-?"], ["--help"], ["--he"]].allSatisfy { try OIDCToken($0).page == .help })
        #expect(try OIDCToken(["--usage"]).page == .usage && OIDCToken(["-V"]).page == .version)
    }

    @Test(
        arguments: [
            [], [""], ["work", "extra"], ["-z", "work"], ["--nothing", "work"], ["-t"], ["-t", "-5", "work"],
            ["--time=abc", "work"], ["--all=1", "work"], ["--i", "work"], ["-o1x", "work"], ["-oa;b", "work"],
            ["--token=", "work"], ["--issuer=a b", "work"], ["--expires-at=é", "work"], ["--", "-a", "work"],
        ])
    func `refuses what that program refuses, and variables that are none`(arguments: [String]) {
        #expect(throws: AdapterFailure.self) { try OIDCToken(arguments) }
    }

    @Test(arguments: ["", "a b", "a\nb", "é", "a\u{7F}"]) func `a token that is none is not given`(token: String) throws
    {
        let facts = OIDCToken.Facts(token: token, issuer: "https://id.example.org", expiresAt: nil)
        #expect(throws: AdapterFailure.self) { try OIDCToken(["work"]).answer(facts) }
    }

    @Test func `a value with characters of a shell is quoted, and a missing expiry is 0`() throws {
        let facts = OIDCToken.Facts(token: "a'$(b)", issuer: "https://id.example.org", expiresAt: nil)
        let text = String(decoding: try OIDCToken(["-oA", "-eB", "work"]).answer(facts), as: UTF8.self)
        #expect(text == "A='a'\\''$(b)'; export A;\nB=0; export B;\n")
    }
}
