extension Flow {
    /// Why the flow has ended; nil while it is pending, and if it was completed.
    package var failure: RingbackError? {
        switch status {
        case .pending, .completed: nil
        case .cancelled: error ?? RingbackError(.cancelled, "The sign-in to \(account) was cancelled.")
        case .expired:
            error
                ?? RingbackError(.flowExpired, "The sign-in to \(account) was not finished in time.", recovery: .signIn)
        default: error ?? RingbackError(.badResponse, "The sign-in to \(account) failed.", recovery: .signIn)
        }
    }
}
