internal import ArchiveStore
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// The output of files in inboxes.
struct InboxFilesText {
  private let files: [(inbox: Inbox, file: InboxFile)]
  private let options: OutputOptions
  private let listsAll: Bool
  /// Whether all inboxes could be read.
  private let isComplete: Bool

  init(
    _ files: [(Inbox, InboxFile)], _ options: OutputOptions, listsAll: Bool, isComplete: Bool
  ) {
    self.isComplete = isComplete
    self.files = files.map { (inbox: $0.0, file: $0.1) }
    self.options = options
    self.listsAll = listsAll
  }

  /// Prints a line for each file, or a JSON object.
  func write(_ console: Console) throws {
    if options.json {
      for (inbox, file) in files { try console.result(file.json(in: inbox)) }
      return
    }
    if files.isEmpty {
      if options.quiet { return }
      return try console.result(
        isComplete ? "the inboxes are empty" : "no files in the inboxes that can be read")
    }
    var table = Table([("state", .left), ("size", .right), ("delivered", .left), ("path", .left)])
    let excerpt = ListExcerpt(files, all: listsAll)
    for (inbox, file) in excerpt.shown {
      table.add([
        file.state.rawValue, Sizes.text(file.size), Times.text(file.time),
        Paths.text(inbox.path(file.name)),
      ])
    }
    try console.result(table, remainder: excerpt.remainder)
  }
}

extension InboxFile {
  fileprivate func json(in inbox: Inbox) -> JSON {
    .object(
      JSON.path(inbox.path(name)) + [
        JSON.Member("app", .string(inbox.app.identifier.description)),
        JSON.Member("state", .string(state.rawValue)),
        JSON.Member("package", .bool(isPackage)),
        JSON.Member("size", .integer(Int64(clamping: size))),
        JSON.Member("time", .string(time.rfc3339)),
      ])
  }
}

extension Inbox.Move {
  /// Prints a line for a moved file, or a JSON object.
  ///
  /// - Parameter operation: The operation in the trash, if it was moved there.
  func write(
    from inbox: Inbox, dryRun: Bool, operation: String?, _ options: OutputOptions,
    _ console: Console
  ) throws {
    if options.json {
      return try console.result(
        .object(
          JSON.path(inbox.path(name)) + [
            JSON.Member("app", .string(inbox.app.identifier.description)),
            JSON.Member("target", target.map { .text($0) } ?? .null),
            JSON.Member("trash", operation.map { .string($0) } ?? .null),
            JSON.Member("size", .integer(Int64(clamping: size))),
            JSON.Member("dry_run", .bool(dryRun)),
          ]))
    }
    if options.quiet { return }
    let place = target.map { "to \(Paths.text($0))" } ?? "to the trash"
    let verb = dryRun ? "would be moved" : "moved"
    try console.result(
      "\(Paths.text(inbox.path(name))): \(verb) \(place) (\(Sizes.text(size)))")
  }
}
