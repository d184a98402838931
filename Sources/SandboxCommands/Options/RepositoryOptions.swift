internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// Which repository a command works on.
struct RepositoryOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The repository; else $SANDBOXCTL_REPOSITORY, else the user's own.", valueName: "repo"))
  var repo: String?

  /// The repository's path: the option's, the environment's, or the default in the user's data.
  func path() throws -> ByteString {
    if let repo { return ByteString(repo) }
    if let named = Host.environment("SANDBOXCTL_REPOSITORY") { return named }
    if let data = Host.environment("XDG_DATA_HOME") {
      return data.appending("sandboxctl/repository")
    }
    guard let home = Host.environment("HOME") else {
      throw UsageError("there is no repository to work on", hint: "name one with '--repo DIR'")
    }
    return home.appending(".local/share/sandboxctl/repository")
  }

  /// Opens it.
  func open() throws -> (repository: Repository, storage: LocalStorage) {
    let storage = try LocalStorage(path: try path())
    return (try Repository.open(storage), storage)
  }
}

extension Repository {
  /// Begins reading by way of this host's copies of the index.
  func beginCachedReading() throws -> RepositoryReader {
    let folder = Host.cacheFolder.map {
      $0.appending("sandboxctl").appending(ByteString(id.hex)).appending("index")
    }
    return try beginReading(cache: folder.map { IndexCache(folder: $0) })
  }
}
