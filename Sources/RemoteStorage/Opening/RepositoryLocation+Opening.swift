package import ArchiveStore

extension RepositoryLocation {
  /// Opens the storage of an existing repository.
  ///
  /// - Throws: `noRepository` if the directory or the bucket does not exist.
  package func open(_ settings: ConnectionSettings) throws(StoreError) -> any Storage {
    switch self {
    case .local(let path): return settings.limiting(try LocalStorage(path: path))
    case .sftp(let directory):
      return settings.counting(try SFTPStorage(directory, options: settings.sftp))
    case .s3: throw unsupported
    }
  }

  /// Opens the storage for a new repository, whose directory is created with its parents.
  package func create(_ settings: ConnectionSettings) throws(StoreError) -> any Storage {
    switch self {
    case .local(let path): return settings.limiting(try LocalStorage.create(path: path))
    case .sftp(let directory):
      return settings.counting(try SFTPStorage.create(directory, options: settings.sftp))
    case .s3: throw unsupported
    }
  }

  private var unsupported: StoreError {
    StoreError(
      .unsupported, "open the repository", subject: description, reason: "it is not on this host")
  }
}

extension ConnectionSettings {
  fileprivate var sftp: SFTPOptions {
    var options = SFTPOptions()
    options.sshCommand = sshCommand
    return options
  }

  /// Returns a storage of this host with the limits, if there are any.
  fileprivate func limiting(_ storage: LocalStorage) -> any Storage {
    if uploadRate == nil, downloadRate == nil { return storage }
    return TransferStorage(
      storage, counts: TransferCounts(), upload: uploadRate.map { RateLimit($0) },
      download: downloadRate.map { RateLimit($0) })
  }

  /// Returns a storage of another host with the limits. Its requests are counted.
  fileprivate func counting(_ storage: any Storage) -> any Storage {
    TransferStorage(
      storage, counts: .ofProcess, upload: uploadRate.map { RateLimit($0) },
      download: downloadRate.map { RateLimit($0) }, connections: connections)
  }
}
