package import SystemIO

/// The location of a repository as given by `--repo`, `$SANDBOXCTL_REPOSITORY` and the
/// configuration.
///
/// | text | location |
/// | --- | --- |
/// | `/path`, `path`, `./s3:path` | a directory of this host |
/// | `sftp://user@host:22/path` | a directory that `ssh` reaches, with user and port |
/// | `sftp:alias/path` | the same, with a host of the user's ssh configuration |
/// | `s3://bucket/prefix` | objects of a bucket below a prefix |
///
/// After a host, `/path` is absolute and `/~/path` relative to the directory that the server starts
/// in. Nothing is percent-decoded. Text with the form of another program's locations is refused
/// with a hint, so that a typo never creates a local directory called `s3:`.
package enum RepositoryLocation: Hashable, Sendable {
  /// A directory of this host, absolute or relative to the working directory.
  case local(ByteString)
  /// A directory of another host.
  case sftp(SFTPLocation)
  /// Objects of a bucket.
  case s3(S3Location)

  /// Parses the text that names a repository.
  ///
  /// - Throws: a usage error with the text to write instead. It never shows a password.
  package init(parsing text: ByteString) throws(OperationError) {
    if text.isEmpty {
      throw LocationText(text).refused("it is empty", hint: LocationText.forms)
    }
    let location = LocationText(text)
    try location.requireNoSpace()
    guard let scheme = location.scheme else {
      try location.requireNoHost()
      self = .local(text)
      return
    }
    switch scheme {
    case "sftp": self = .sftp(try SFTPLocation(location))
    case "s3": self = .s3(try S3Location(location))
    default: throw location.refusedScheme(scheme)
    }
  }

  /// The directory of this host, or nil if the repository is on another one.
  package var localPath: ByteString? {
    if case .local(let path) = self { path } else { nil }
  }

  /// Checks the location of a new directory of this host: a text that another program or a shell
  /// reads differently is more likely a slip.
  ///
  /// - Throws: a usage error with the text to write instead.
  package func requireUsualDirectory() throws(OperationError) {
    if case .local(let path) = self { try LocationText(path).requireUsualDirectory() }
  }

  /// The text that names this location, from which `init(parsing:)` returns an equal one, as far as
  /// the text has parts for it: the endpoint and the region of a bucket have options of their own.
  package var text: ByteString {
    switch self {
    case .local(let path): path
    case .sftp(let location): location.text
    case .s3(let location): location.text
    }
  }
}

extension RepositoryLocation: CustomStringConvertible {
  /// The text for display. It contains no secret, because a location has none.
  package var description: String { text.description }
}
