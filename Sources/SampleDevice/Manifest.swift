internal import Codecs
internal import SandboxModel
internal import SystemIO

/// The complete sample on one of its days: the value from which the sample is created, changed and
/// tested. It is identical for the same day on every machine.
struct Manifest {
  /// The entries sorted by the bytes of their paths, so that a directory precedes its content.
  let entries: [SampleEntry]
  /// The paths that exist on other days but not on this one.
  let absent: [ByteString]
  let databases: [SampleDatabase]
  /// The modification time of the device's directory.
  let rootModified: Timestamp

  /// The file that identifies a sample.
  static let deviceFile: ByteString = "device.plist"

  /// Creates the manifest for day 0, the initial state, or for a later day.
  init(day: Int) throws(SampleError) {
    let containers = try Self.containers(day: day)
    var entries: [ByteString: SampleEntry] = [:]
    var newest: [ByteString: Timestamp] = [:]
    func add(_ entry: SampleEntry) {
      entries[entry.path] = entry
      if entry.content != .directory { note(entry.modified, in: entry.parent) }
    }
    func note(_ time: Timestamp, in directory: ByteString) {
      newest[directory] = max(newest[directory] ?? time, time)
    }
    let device = try Self.device()
    add(device)
    rootModified = device.modified
    for container in containers {
      for entry in container.entries { add(entry.placed(in: container.directory)) }
      for (path, removed) in container.absent {
        if let removed { note(removed, in: container.directory.appending(path).parent) }
      }
    }
    for path in entries.keys { Self.addDirectories(above: path, to: &entries) }
    for (path, time) in newest { entries[path]?.modified = time }
    self.entries = entries.values.sorted { $0.path < $1.path }
    absent = containers.flatMap { container in
      container.absent.map { container.directory.appending($0.path) }
    }
    databases = containers.flatMap(\.databases)
  }

  /// Adds ancestors of a path that no container lists explicitly.
  private static func addDirectories(
    above path: ByteString, to entries: inout [ByteString: SampleEntry]
  ) {
    var directory = path.parent
    while !directory.isEmpty, entries[directory] == nil {
      entries[directory] = .directory(directory)
      directory = directory.parent
    }
  }

  /// Returns a simulator's device file: an iPhone with iOS 17.5.
  private static func device() throws(SampleError) -> SampleEntry {
    try .xmlPlist(
      deviceFile,
      .members([
        "UDID": .string("8E81973E-0BEC-47B0-B898-D190F9EBDACC"),
        "deviceType": .string("com.apple.CoreSimulator.SimDeviceType.iPhone-15"),
        "isDeleted": .bool(false),
        "isEphemeral": .bool(false),
        "name": .string("Sample iPhone"),
        "runtime": .string("com.apple.CoreSimulator.SimRuntime.iOS-17-5"),
        "runtimePolicy": .string("default"),
        "state": .integer(1),
      ]), day: -200)
  }

  /// Returns the containers of four apps, one of them offloaded, an extension and two groups.
  private static func containers(day: Int) throws(SampleError) -> [ContainerPlan] {
    [
      try NotebookApp.bundle(), try NotebookApp.data(day: day), try NotebookApp.shareExtension(),
      try DarkroomApp.bundle(), try DarkroomApp.data(day: day),
      try ReaderApp.bundle(), try ReaderApp.data(day: day),
      try PodcastApp.data(),
      try NotebookApp.group(), try PodcastApp.group(),
    ]
  }
}

extension Manifest {
  /// Whether a directory's device file is that of the sample.
  func isDeviceFile(in directory: borrowing Directory) throws(SystemError) -> Bool {
    do {
      let bytes = try directory.file(Self.deviceFile).readAll(limit: 64 * 1024)
      guard let bytes else { return false }
      return entries.contains { $0.path == Self.deviceFile && $0.content == .file(bytes) }
    } catch {
      if error.isMissing { return false }
      throw error
    }
  }
}

extension SampleEntry {
  /// Returns the entry with its path, and the target of a hard link, below a container.
  fileprivate func placed(in container: ByteString) -> SampleEntry {
    var placed = self
    placed.path = container.appending(path)
    if case .hardLink(let file) = content {
      placed.content = .hardLink(container.appending(file))
    }
    return placed
  }
}
