package import ArchiveStore
internal import SystemIO

extension RepositoryLocation {
  /// Opens the storage of an existing repository.
  ///
  /// - Throws: `noRepository` if the directory or the bucket does not exist.
  package func open(_ settings: ConnectionSettings) throws(StoreError) -> any Storage {
    switch self {
    case .local(let path): return settings.limiting(try LocalStorage(path: path))
    case .sftp(let directory):
      return settings.counting(try SFTPStorage(directory, options: settings.sftp(watching: text)))
    case .s3(let bucket):
      return settings.counting(
        try S3Storage(bucket, options: settings.s3(watching: text)), isSpooling: true)
    }
  }

  /// Opens the storage for a new repository, whose directory is created with its parents. A bucket
  /// must exist; whether its store is consistent is checked.
  package func create(_ settings: ConnectionSettings) throws(StoreError) -> any Storage {
    switch self {
    case .local(let path): return settings.limiting(try LocalStorage.create(path: path))
    case .sftp(let directory):
      return settings.counting(
        try SFTPStorage.create(directory, options: settings.sftp(watching: text)))
    case .s3(let bucket):
      let storage = try S3Storage(bucket, options: settings.s3(watching: text))
      try storage.requireConsistency()
      return settings.counting(storage, isSpooling: true)
    }
  }
}

extension ConnectionSettings {
  private var uploadLimit: RateLimit? { uploadRate.map(Self.limit) }
  private var downloadLimit: RateLimit? { downloadRate.map(Self.limit) }

  private static func limit(_ rate: UInt64) -> RateLimit {
    RateLimit(rate, isStopping: StopSignals.isStopping)
  }

  fileprivate func sftp(watching location: ByteString) -> SFTPOptions {
    var options = SFTPOptions()
    options.sshCommand = sshCommand
    options.outages = OutageWatch(of: location.description)
    return options
  }

  /// Packs are spooled in the host's cache, so that a full memory file system does not end a
  /// backup.
  fileprivate func s3(watching location: ByteString) -> S3Storage.Options {
    var options = S3Storage.Options()
    options.spool = Host.cacheDirectory
    options.http.isStopping = StopSignals.isStopping
    options.retries.outages = OutageWatch(of: location.description)
    options.connections = connections
    options.count(in: .ofProcess, limitingUploadTo: uploadLimit)
    return options
  }

  /// Returns a storage of this host with the limits, if there are any.
  fileprivate func limiting(_ storage: LocalStorage) -> any Storage {
    if uploadRate == nil, downloadRate == nil { return storage }
    return TransferStorage(
      storage, counts: TransferCounts(), upload: uploadLimit, download: downloadLimit,
      isStopping: StopSignals.isStopping)
  }

  /// Returns a storage of another host with the limits. Its requests are counted.
  fileprivate func counting(_ storage: any Storage, isSpooling: Bool = false) -> any Storage {
    ReadAheadStorage(
      TransferStorage(
        storage, counts: .ofProcess, upload: uploadLimit, download: downloadLimit,
        connections: connections, isSpooling: isSpooling, isStopping: StopSignals.isStopping),
      connections: connections)
  }
}

extension S3Storage.Options {
  /// Counts and limits the bytes of bodies when they are sent, not when they are written to the
  /// local files that hold objects until they are complete. Bytes that are sent again count again.
  package mutating func count(in counts: TransferCounts, limitingUploadTo limit: RateLimit?) {
    http.uploadPortion = limit?.portion
    http.onTransfer = { direction, bytes in
      guard direction == .upload else { return }
      counts.didSend(bytes: bytes)
      limit?.take(bytes)
    }
  }
}
