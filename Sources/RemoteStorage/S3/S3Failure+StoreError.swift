package import ArchiveStore
internal import SystemIO

extension S3Failure {
  /// Returns the error of the storage: "cannot ACTION 'SUBJECT': …". It has neither keys nor headers
  /// of the request.
  package func storeError(_ action: String, _ subject: String) -> StoreError {
    switch reason {
    case .endpoint(let url):
      return StoreError(
        .invalid, "use the endpoint", subject: ByteString(url).description,
        reason: "it is not of the form 'https://host:port'", hint: "write the URL of the server alone")
    case .settings(let error):
      return StoreError(
        .system, error.operation.rawValue, subject: error.path.description, reason: error.reason,
        hint: error.hint, cause: error)
    case .command(let words):
      return StoreError(
        .system, action, subject: subject,
        reason: "the command for credentials failed: \(words)",
        hint: "check 'credential_process' of the profile")
    case .noCredentials(let profile, let exists):
      return noCredentials(profile, exists, action, subject)
    case .connection(let failure, let host): return connection(failure, host, action, subject)
    case .refused(let refusal, let host): return refused(refusal, host, action, subject)
    case .answer(let words, let host):
      return StoreError(
        .system, action, subject: subject, reason: "'\(host)' \(words)", hint: Self.endpointHint)
    case .spool(let error):
      return StoreError(
        .system, action, subject: subject, reason: "\(error.description)", hint: error.hint,
        cause: error)
    }
  }

  private static let endpointHint = "check the endpoint: it has to be a server that speaks S3"

  private func noCredentials(
    _ profile: String, _ exists: Bool, _ action: String, _ subject: String
  ) -> StoreError {
    let name = ByteString(profile)
    return StoreError(
      .system, action, subject: subject,
      reason: exists
        ? "the profile '\(name)' has no credentials" : "there are no credentials for the store",
      hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add them to the profile '\(name)' "
        + "in ~/.aws/credentials")
  }

  private var repeated: String { attempts > 1 ? " (after \(attempts) attempts)" : "" }

  private func connection(
    _ failure: HTTPFailure, _ host: String, _ action: String, _ subject: String
  ) -> StoreError {
    let about = "'\(host)': \(failure.reason)\(repeated)"
    switch failure.kind {
    case .cancelled:
      return StoreError(.interrupted, action, subject: subject, reason: failure.reason)
    case .tooLarge:
      return StoreError(.damaged, action, subject: subject, reason: failure.reason)
    case .source(let error):
      return S3Failure(.spool(error)).storeError(action, subject)
    case .insecure:
      return StoreError(
        .system, action, subject: subject, reason: "no secure connection to \(about)",
        hint: "check the endpoint, or name the file of its certificate authority (AWS_CA_BUNDLE)")
    case .unusable:
      return StoreError(.system, action, subject: subject, reason: about, hint: Self.endpointHint)
    case .unreachable, .timedOut, .dropped:
      return StoreError(
        .system, action, subject: subject, reason: "no answer of \(about)",
        hint: "check the network, the endpoint and the proxy; stored objects are not affected")
    }
  }
}

extension S3Failure {
  /// EACCES and EDQUOT of Linux, which have codes of errors for programs.
  private static let (accessDenied, quotaExceeded): (Int32, Int32) = (13, 122)

  private func refused(
    _ refusal: S3Refusal, _ host: String, _ action: String, _ subject: String
  ) -> StoreError {
    func error(
      _ reason: String, _ hint: String?, _ code: StoreError.Code = .system, number: Int32? = nil
    ) -> StoreError {
      let cause = number.map { SystemError(.open, ByteString(subject), number: $0) }
      return StoreError(
        code, action, subject: subject, reason: reason + repeated, hint: hint, cause: cause)
    }
    if refusal.isSkewed { return skewed(refusal, action, subject) }
    if refusal.isWebPage {
      return error(
        "'\(host)' answers with a web page (status \(refusal.status)), not as a store",
        Self.endpointHint)
    }
    switch refusal.code {
    case "NoSuchBucket":
      return error(
        "'\(host)' has no such bucket", "create the bucket, or check its name and the endpoint",
        .noRepository)
    case "NoSuchKey": return error("it is not in the repository", nil, .missing)
    case "SignatureDoesNotMatch", "AuthFailure":
      return error(
        "the store refuses the signature: the secret access key is wrong", Self.credentialHint)
    case "InvalidAccessKeyId":
      return error("the store does not know the access key ID", Self.credentialHint)
    case "ExpiredToken", "TokenRefreshRequired", "InvalidToken":
      return error("the session token is not valid, or no longer", "renew the credentials")
    case "AccessDenied", "AllAccessDisabled", "AccountProblem":
      return error(
        "the store denies access" + Self.quoted(refusal.message),
        "check the rights of these credentials for the bucket and the prefix",
        number: Self.accessDenied)
    case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull":
      return error(
        "the store has no space left, or the quota is exceeded", "free space, or raise the quota",
        number: Self.quotaExceeded)
    case "InvalidRange": return error("it ends before the range", nil, .damaged)
    default: return other(refusal, host, error)
    }
  }

  private func other(
    _ refusal: S3Refusal, _ host: String,
    _ error: (String, String?, StoreError.Code, Int32?) -> StoreError
  ) -> StoreError {
    if let region = refusal.region, refusal.status == 400 || refusal.status < 400 {
      return error(
        "the bucket is in the region '\(region)'", "set the region to '\(region)'", .system, nil)
    }
    if refusal.status < 400 {
      let target = refusal.host.map { " to '\($0)'" } ?? ""
      return error(
        "'\(host)' redirects the request\(target), which is not followed: credentials are for one host",
        "set the endpoint and the region of the bucket", .system, nil)
    }
    if refusal.status == 501 || refusal.status == 405 {
      return error("'\(host)' does not support the request", nil, .unsupported, nil)
    }
    return error(
      "'\(host)' answered with \(refusal.code) (status \(refusal.status))"
        + Self.quoted(refusal.message), nil, .system, nil)
  }

  private func skewed(_ refusal: S3Refusal, _ action: String, _ subject: String) -> StoreError {
    let own = Timestamp(seconds: refusal.localTime.seconds).rfc3339
    let reason =
      if let server = refusal.serverTime, let difference = refusal.clockDifference {
        "the clock of this machine (\(own)) differs from that of the store "
          + "(\(Timestamp(seconds: server.seconds).rfc3339)) by "
          + "\(Int((abs(difference) / 60).rounded())) minutes"
      } else {
        "the clock of this machine (\(own)) differs too far from that of the store"
      }
    return StoreError(
      .system, action, subject: subject, reason: reason,
      hint: "set the clock of this machine, for example by NTP")
  }

  private static let credentialHint =
    "check AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials"

  private static func quoted(_ message: String) -> String {
    message.isEmpty ? "" : ": \"\(message)\""
  }
}
