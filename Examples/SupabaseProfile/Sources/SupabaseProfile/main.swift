// A small app of a Supabase project: says who is signed in, reads their row, follows what happens, signs in and out.
//
//     PROJECT_URL=https://abcdefgh.supabase.co PROJECT_KEY=sb_publishable_... SupabaseProfile app [sign-in PROVIDER | sign-out]
//
// Ringback keeps the session; this program never sees a refresh token.

import Foundation
import FoundationNetworking
import RingbackClient

let arguments = CommandLine.arguments.dropFirst()
let project = ProcessInfo.processInfo.environment
guard let account = arguments.first, let url = project["PROJECT_URL"].flatMap(URL.init),
    let key = project["PROJECT_KEY"]
else {
    fatalError("usage: PROJECT_URL=… PROJECT_KEY=… SupabaseProfile ACCOUNT [sign-in PROVIDER | sign-out]")
}
let ringback = BrokerClient(application: "Profile example")

/// The person's own row, by the project's REST endpoint.
func row(of session: Session) async throws -> String {
    let query = [URLQueryItem(name: "select", value: "*"), URLQueryItem(name: "id", value: "eq.\(session.subject)")]
    var request = URLRequest(url: url.appending(path: "rest/v1/profiles").appending(queryItems: query))
    request.setValue(key, forHTTPHeaderField: "apikey")
    // Asked for anew each time: it is fresh, and this app keeps none.
    request.setValue("Bearer \(try await ringback.session(account).accessToken)", forHTTPHeaderField: "Authorization")
    let (data, _) = try await URLSession.shared.data(for: request)
    return String(decoding: data, as: UTF8.self)
}

func show(_ session: Session?) async throws {
    guard let session else { return print("nobody is signed in") }
    print("signed in:", session.user?.email ?? session.subject)
    print("profile:", try await row(of: session))
}

do {
    if arguments.contains("sign-out") {
        try await ringback.signOut(account)
        try await show(nil)
    } else if arguments.contains("sign-in") {
        if case .pending(let flow) = try await ringback.signIn(account, with: .browser(arguments.last)) {
            // A browser is started with openURL only: other users can read what a program is started with.
            let own = try await ringback.account(account).browser
            if flow.openURL.map({ Browser.open($0, in: own) }) != true, let page = flow.authorizationURL {
                print("Open:", page)
            }
            try await ringback.wait(for: flow)
        }
        try await show(try await ringback.session(account))
    } else {
        for try await (event, session) in ringback.authStateChanges(account) {
            print("event:", event.rawValue)
            if [.initialSession, .signedIn, .userUpdated].contains(event) { try await show(session) }
            if event == .signedOut {
                try await show(nil)
                break
            }
        }
    }
} catch {
    // With the extension in LocalizedRingbackError.swift, errors of RingbackClient are sentences here too.
    FileHandle.standardError.write(Data("\(error.localizedDescription)\n".utf8))
    exit(1)
}
