package import SystemIO

/// A reader of a foreign format: its entries in sequence, and the content of a file before the next
/// entry.
///
/// A source may name a directory after its content or never, and a path several times: the last
/// entry of a path is the valid one, as `tar` extracts it.
package protocol EntrySource: ~Copyable {
  /// Returns the next entry, or nil after the last one. Skips the unread content of the previous
  /// file.
  ///
  /// An entry that cannot be represented is recorded in `skipped` and not returned.
  ///
  /// - Throws: `InterchangeError` if nothing after this point can be read; the kind `damaged` keeps
  ///   what was read before.
  mutating func next() throws(InterchangeError) -> ForeignEntry?

  /// Receives the contents of the last import before the first entry. A source that can recognize
  /// an unchanged content without reading it then sets `ForeignEntry.version`, and `content`
  /// instead of opening it. The default is to do nothing.
  mutating func recognize(in contents: KnownContents)

  /// Reads the next bytes of the file that `next` returned last, and returns their number: at most
  /// the size of the buffer, 0 at the end of the file.
  ///
  /// - Throws: The kind `damagedEntry` if this file cannot be read and later entries may be; other
  ///   kinds as `next` does.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int

  /// Takes the content of the file that `next` returned last out of the source. Returns nil if it
  /// can only be read in sequence, which is the default.
  mutating func detachContent() -> (any DetachedContent)?

  /// Skips the hole at the current position of the file and returns its length in bytes; 0 if there
  /// is data, the end, or if the source does not know holes. The default is 0: holes are read as
  /// zeros.
  mutating func skipHole() throws(InterchangeError) -> UInt64

  /// The entries that could not be represented so far, and the properties that were dropped.
  var skipped: SkippedEntries { get }

  /// The time at which the source was made, if it records one: the default of the snapshot's time.
  var madeAt: Timestamp? { get }

  /// Whether the names of the entries so far are the bytes of the source. If not, different names
  /// may have become equal. The default is true.
  var keepsNames: Bool { get }

  /// The names of the owners of the entries so far, where the source has them. The default is none.
  var owners: OwnerNames { get }

  /// The apps that the source lists, as far as it was read, ordered by identifier. The default is
  /// none.
  var apps: [ForeignApp] { get }
}

extension EntrySource where Self: ~Copyable {
  package mutating func recognize(in contents: KnownContents) {}
  package mutating func detachContent() -> (any DetachedContent)? { nil }
  package mutating func skipHole() throws(InterchangeError) -> UInt64 { 0 }
  package var madeAt: Timestamp? { nil }
  package var keepsNames: Bool { true }
  package var owners: OwnerNames { OwnerNames() }
  package var apps: [ForeignApp] { [] }
}

/// A writer of a foreign format.
///
/// Entries arrive in the order of their paths, component by component by bytes, and a directory
/// before its content. A hard link follows the first name of its file. The root of what is exported
/// has the empty path and comes first; a format without a root ignores it.
package protocol EntrySink: ~Copyable {
  /// Begins an entry. For a file, calls of `write` and `writeHole` with exactly its size in bytes
  /// follow.
  ///
  /// A property that the format cannot represent is recorded in `skipped`. For a file that is
  /// skipped as a whole, the bytes arrive nevertheless and are ignored.
  mutating func add(_ entry: ForeignEntry) throws(InterchangeError)

  /// Writes the next bytes of the file added last. Holes that `writeHole` does not take arrive as
  /// zeros; a format with holes knows them from the entry.
  mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError)

  /// Takes a hole of the file added last as a whole and returns true, or returns false to get its
  /// zeros. The default is false.
  mutating func writeHole(_ count: UInt64) throws(InterchangeError) -> Bool

  /// Writes the end of the archive. Without this call the output is incomplete and is discarded.
  mutating func finish() throws(InterchangeError)

  /// The entries that could not be written, and the properties that were dropped.
  var skipped: SkippedEntries { get }

  /// Whether the format has hard links. If not, each name of a file arrives as a separate file. The
  /// default is true.
  var holdsHardLinks: Bool { get }
}

extension EntrySink where Self: ~Copyable {
  package var holdsHardLinks: Bool { true }
  package mutating func writeHole(_ count: UInt64) throws(InterchangeError) -> Bool { false }
}
