internal import ArchiveStore
internal import Codecs
internal import Mount
internal import SystemIO

/// A mounted file system until its end, with its output.
struct MountRun {
  /// The directory as the user named it.
  let directory: ByteString
  let point: MountPoint
  let files: SnapshotFileSystem
  let reader: SharedReader
  let messages: MountMessages
  let output: OutputOptions
  let console: Console

  /// The end of a mount.
  private struct Ending {
    var isBySignal = false
    var wasInUse = false
  }

  /// Mounts the file system, and answers requests until it is unmounted or a signal ends the
  /// command. Returns `damaged` if damage was found.
  func serve(_ options: FuseSession.Options) throws -> ExitStatus {
    try StopSignals.watch()
    let session = try FuseSession(files, on: point, options)
    var ending = Ending()
    do {
      try showStart()
      ending.isBySignal = waitForEnd(of: session)
    } catch {
      // Standard output is lost.
      _ = try? session.unmount()
      throw error
    }
    ending.wasInUse = try session.unmount()
    // The threads of a detached file system end with the program.
    if !ending.wasInUse { session.finish() }
    messages.show(on: console)
    try show(ending)
    return files.damageCount == 0 ? .done : .damaged
  }

  /// Waits until the file system is unmounted, or for a signal. Returns whether a signal was
  /// received.
  private func waitForEnd(of session: FuseSession) -> Bool {
    while !session.hasEnded {
      messages.show(on: console)
      // Often enough for messages; the lease's thread wakes as often (docs/power.md).
      if StopSignals.wait(milliseconds: 30_000, tolerance: 3000) == .stop { return true }
    }
    return false
  }

  private func showStart() throws {
    if output.json {
      try console.result(
        JSON.object(
          [JSON.Member("event", .string("mounted"))] + JSON.path(point.path, named: "directory")
            + [JSON.Member("snapshots", .integer(Int64(files.snapshotCount)))]))
    } else if !output.quiet {
      let repository = ByteString(reader.repository.location)
      let count = Sizes.count(files.snapshotCount, "snapshot")
      try console.result("mounted \(count) of '\(repository)' on '\(directory)'")
      console.note("Ctrl-C or 'fusermount3 -u \(ShellWord.text(directory))' unmounts it")
    }
    try console.flush()
  }

  private func show(_ ending: Ending) throws {
    if ending.wasInUse {
      console.warning(
        "'\(directory)' is in use: it was detached, and programs that use it get errors from now on"
      )
    }
    if output.json {
      try console.result(
        JSON.object(
          [JSON.Member("event", .string("unmounted"))] + JSON.path(point.path, named: "directory")
            + [
              JSON.Member("by", .string(ending.isBySignal ? "signal" : "unmount")),
              JSON.Member("was_in_use", .bool(ending.wasInUse)),
              JSON.Member("damaged", .integer(Int64(files.damageCount))),
            ]))
    } else if !output.quiet {
      try console.result("unmounted '\(directory)'")
    }
  }
}
