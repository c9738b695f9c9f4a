import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What the daemon holds for an account that is to be removed, besides its session.
struct AccountHoldings {
    let name: String
    let calls: BrokerCalls

    /// A client that was deleted.
    struct Registration {
        let document: JSON

        var text: String {
            let client = Sanitizer.line(document["client_id"]?.string ?? "", limit: 1_100)
            let issuer = Sanitizer.line(document["issuer"]?.string ?? "", limit: 2_000)
            return document["deleted_at_provider"]?.bool == true
                ? "Deleted its client \(client) at \(issuer)"
                : "Its client \(client) stays registered at \(issuer), which gave no token to delete it with."
        }
    }

    /// Revokes the restricted sockets that `ringback expose` made for the account: they would serve the next session of an
    /// account of this name. Returns their names.
    ///
    /// - Parameter needsDaemon: false returns none if no daemon answers.
    func revokeSockets(needsDaemon: Bool) throws(RingbackError) -> [String] {
        let sockets = try sockets(needsDaemon: needsDaemon)
        for socket in sockets {
            do throws(RingbackError) {
                _ = try calls.call(.revokeExposedSocket, [socket])
            } catch {
                // It has ended meanwhile.
                guard error.kind == .notFound else { throw error }
            }
        }
        return sockets
    }

    /// The names of the restricted sockets that `ringback expose` made for the account.
    ///
    /// - Parameter needsDaemon: false returns none if no daemon answers.
    func sockets(needsDaemon: Bool) throws(RingbackError) -> [String] {
        let answer: JSON
        do throws(RingbackError) {
            answer = try calls.call(.listExposedSockets)
        } catch {
            guard error.kind == .notFound || (error.kind == .noDaemon && !needsDaemon) else { throw error }
            return []
        }
        var names: [String] = []
        for list in ["exposed_sockets", "closed"] {
            for entry in answer[list]?.array ?? [] {
                guard entry["source"] == "api", let socket = entry["name"]?.string, !names.contains(socket),
                    (entry["accounts"]?.array ?? []).contains(.string(name))
                else { continue }
                names.append(socket)
            }
        }
        return names
    }

    /// Deletes the client that `ringback account add --register` registered, at the provider (RFC 7592) and in the vault.
    /// Nil if there is none.
    func deleteRegistration() throws(RingbackError) -> Registration? {
        do throws(RingbackError) {
            return Registration(document: try calls.call(.deleteRegistration, [name], timeout: .seconds(60)))
        } catch {
            if error.kind == .notFound || error.kind == .accountNotFound { return nil }
            var error = error
            error.detail += " The client that was registered for \(name) could not be deleted, so the account stays."
            error.advice =
                "Try again: \(shown: "ringback account remove \(name)"), or leave the client as it is: "
                + "\(shown: "ringback account remove \(name) --keep-registration")"
            throw error
        }
    }

    /// The same for an account that is not configured any more. Returns what happened, as text for the user.
    func deleteRegistration(at issuer: String, clientID: String) -> String? {
        do throws(RingbackError) {
            let query: [(String, String?)] = [("issuer", issuer), ("client_id", clientID)]
            let document = try calls.call(.deleteRegistration, [name], query: query, timeout: .seconds(60))
            return Registration(document: document).text
        } catch {
            // There is none, or a configured account uses it.
            if [.notFound, .stateConflict, .validationFailed].contains(error.kind) { return nil }
            return "Its client \(Sanitizer.line(clientID, limit: 1_100)) stays registered: "
                + Sanitizer.line(error.detail, limit: 400)
        }
    }

    /// Drops the sign-out that the provider has not been told of. Without the account, the provider can no longer be told.
    func forgetSignOut() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try calls.call(.removeSealedSessions, [name], query: [("skip_revocation", "true")])
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}
