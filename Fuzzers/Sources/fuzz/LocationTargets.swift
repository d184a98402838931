import RemoteStorage
import SystemIO

extension Target {
  /// The texts that name repositories, and the words of commands.
  static let locationTargets = [Target(name: "repository-location", run: repositoryLocation)]

  /// A repository location. An accepted text must name the same location again. No part of it may
  /// be an option of `ssh` or lead out of its directory, and no password is accepted or printed.
  @Sendable private static func repositoryLocation(_ bytes: [UInt8]) {
    let text = ByteString(bytes)
    _ = CommandWords.split(text)
    do throws(OperationError) {
      let location = try RepositoryLocation(parsing: text)
      require((try? RepositoryLocation(parsing: location.text)) == location, "'\(text)' changes")
      switch location {
      case .local(let path): require(path == text, "the path '\(text)' changes")
      case .sftp(let directory): check(directory)
      case .s3(let bucket):
        require((3...63).contains(bucket.bucket.utf8.count), "the bucket of '\(text)'")
        require(!bucket.prefix.components.contains(".."), "the prefix of '\(text)'")
      }
    } catch {
      require(error.kind == .usage && error.hint != nil, "'\(text)' is refused without a hint")
    }
  }

  private static func check(_ directory: SFTPLocation) {
    for word in [directory.host, directory.user ?? "u"] {
      require(!word.isEmpty && word.bytes.first != UInt8(ascii: "-"), "'\(word)' is an option")
    }
    require(!directory.path.components.contains(".."), "the path '\(directory.path)'")
    require((1...65535).contains(directory.port ?? 22), "the port of '\(directory.text)'")
  }
}

/// Texts that name repositories, or almost do, and the words of a command.
enum LocationSeeds {
  static let all: [(target: String, bytes: [UInt8])] = texts.map {
    ("repository-location", Array($0.utf8))
  }

  private static let texts = [
    "sftp://user@host.example:22/srv/backup",
    "sftp:alias/backup",
    "s3://bucket/prefix/of it",
    "/srv/backup",
    "./s3:local",
    "sftp://[::1]/srv",
    "s3:/bucket",
    "sftp://user:secret@host/x",
    "ssh -o 'a b' \"x",
  ]
}
