// The sample device: a small iOS simulator device with four apps, for trying every command and for
// tests. It is a list (Manifest) made by pure functions of the day, which TreeWriter carries out.
//
// The same day gives the same names, bytes, modes, times and attributes on every machine, whatever
// the umask; only inodes, owners, change times and the blocks of holes differ. Its databases and
// pictures are real: SQLite reads the former, every viewer the latter. Its programs do nothing.
//
// Not guaranteed: that a sample is whole when making it failed half way (nothing is removed then),
// or that it stays the same between versions of this program.
public import SystemIO

/// A deterministic sample device in the layout of the iOS simulator.
public enum SampleDevice {
  /// The last day of changes that a sample knows.
  public static let lastDay = 30

  /// Makes a sample in a directory that does not exist or is empty, as it is after `day` days of
  /// changes: 0 to `lastDay`.
  public static func make(at path: ByteString, day: Int = 0) throws(SampleError) -> SampleReport {
    try check(day, 0...lastDay)
    let manifest = try Manifest(day: day)
    var writer = TreeWriter(root: try emptyDirectory(path))
    do {
      try writer.make(manifest)
    } catch {
      throw SampleError(error, hint: "remove '\(path)', which is made in part, and try again")
    }
    return writer.report
  }

  /// Brings a sample to the state after `day` days of changes, 1 to `lastDay`, from whichever day it
  /// is of: documents are edited, added and deleted, databases and preferences change, caches grow.
  /// Files are replaced whole; what the days do not change is left as it is.
  public static func change(at path: ByteString, day: Int) throws(SampleError) -> SampleReport {
    try check(day, 1...lastDay)
    let (start, manifest) = (try Manifest(day: 0), try Manifest(day: day))
    var writer = TreeWriter(root: try sample(path, start))
    do {
      try writer.change(from: start, to: manifest)
    } catch {
      throw SampleError(
        error, hint: "the sample is no longer whole: make a new one in another directory")
    }
    return writer.report
  }

  /// The sample's databases, and the rows that programs must find in them after `day` days.
  public static func databases(day: Int = 0) throws(SampleError) -> [SampleDatabase] {
    try check(day, 0...lastDay)
    return try Manifest(day: day).databases
  }

  private static func check(_ day: Int, _ days: ClosedRange<Int>) throws(SampleError) {
    guard !days.contains(day) else { return }
    throw SampleError(
      .noSuchDay, "make the changes of day", on: ByteString(String(day)), "there is no such day",
      hint: "name a day from \(days.lowerBound) to \(days.upperBound)")
  }
}

// MARK: - The directory

extension SampleDevice {
  /// Opens the directory for a new sample, making it and what is missing above it.
  private static func emptyDirectory(_ path: ByteString) throws(SampleError) -> Directory {
    do {
      let directory = try Directory.open(path: path)
      if try directory.isEmpty() { return directory }
    } catch {
      guard error.isMissing, path.lastComponent != nil else { throw SampleError(error) }
      return try newDirectory(path)
    }
    throw SampleError(
      .notEmpty, "make a sample device in", on: path, "the directory is not empty",
      hint: "name a directory that does not exist or is empty; nothing was changed")
  }

  /// Makes the directory; it is given its mode before it is opened, as the umask may forbid that.
  private static func newDirectory(_ path: ByteString) throws(SampleError) -> Directory {
    let above = path.parent
    do {
      let parent = try Directory.make(path: above.isEmpty ? "." : above)
      let name = path.lastComponent ?? "."
      try parent.createDirectory(name)
      try parent.setPermissions(0o755, of: name)
      return try parent.directory(name)
    } catch {
      throw SampleError(error)
    }
  }

  /// Opens the directory of a sample, which its device file tells.
  private static func sample(_ path: ByteString, _ start: Manifest) throws(SampleError) -> Directory
  {
    do {
      let root = try Directory.open(path: path)
      if try start.isDeviceFile(in: root) { return root }
    } catch {
      throw SampleError(error)
    }
    throw SampleError(
      .notASample, "change the sample device in", on: path,
      "no sample device of this program is there", hint: "make one first: sandboxctl sample DIR")
  }
}
