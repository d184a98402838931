package import ArchiveStore
internal import Codecs
package import SystemIO

extension S3Storage {
  /// The objects of a page; the maximum that stores return.
  private static let pageSize = 1000
  /// The maximum number of pages without an object in sequence.
  private static let emptyPages = 100

  /// Returns the next components of all keys below a directory, sorted by bytes.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    let below = keys(below: directory)
    var names: [ByteString] = []
    try forEachPage(below, delimiter: "/", of: directory) { page throws(StoreError) in
      // The object whose key is the prefix itself stands for a directory in some programs.
      names += page.objects.map(\.key).filter { $0 != below }.map { name($0, below) }
      names += page.prefixes.map { name($0, below) }
    }
    return names.sorted()
  }

  /// Returns the part of a key after a prefix, without a delimiter at its end.
  private func name(_ key: ByteString, _ prefix: ByteString) -> ByteString {
    let rest = key.bytes.dropFirst(prefix.count)
    return ByteString(rest.last == ByteString.slash ? rest.dropLast() : rest)
  }

  /// Calls `body` for each object below a directory, one page at a time, in the order of the keys.
  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    let below = keys(below: directory)
    try forEachPage(below, delimiter: nil, of: directory) { page throws(StoreError) in
      for object in page.objects {
        // Keys that no path has, such as `a//b`, are of another program.
        let components = object.key.bytes.dropFirst(below.count)
          .split(separator: ByteString.slash, omittingEmptySubsequences: false)
        var path = directory
        for component in components { path = path.appending(ByteString(component)) }
        guard key(path) == object.key else { continue }
        try body(path, object.status)
      }
    }
  }

  /// Returns the status of an object, or that of a directory if there are objects below the path.
  ///
  /// The listing has the exact time, which the header of an object has in seconds.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    let directory = ObjectStatus(isDirectory: true, size: 0, modified: Timestamp(seconds: 0))
    if path == .root { return directory }
    let own = key(path)
    let first = try page(own, [("max-keys", "1")], of: path)
    if let object = first.objects.first, object.key == own { return object.status }
    if first.objects.isEmpty { return nil }
    let below = try page(keys(below: path), [("max-keys", "1")], of: path)
    return below.objects.isEmpty ? nil : directory
  }

  /// Fetches all pages of a listing. `body` gets each page once it is checked.
  private func forEachPage(
    _ prefix: ByteString, delimiter: String?, of directory: ObjectPath,
    _ body: (S3Listing) throws(StoreError) -> Void
  ) throws(StoreError) {
    var token: String?
    var last: ByteString = ""
    var empty = 0
    repeat {
      var query = [("max-keys", "\(Self.pageSize)")]
      if let delimiter { query.append(("delimiter", delimiter)) }
      if let token { query.append(("continuation-token", token)) }
      let page = try page(prefix, query, of: directory)
      // A page has to lead further, so that the listing ends.
      let names = page.objects.map(\.key) + page.prefixes
      if let least = names.min(), let greatest = names.max() {
        guard last.isEmpty || least > last else {
          throw wrong("lists '\(least)' after '\(last)'", directory)
        }
        (last, empty) = (greatest, 0)
      } else {
        empty += 1
        guard empty < Self.emptyPages else {
          throw wrong("lists empty pages without end", directory)
        }
      }
      try body(page)
      token = page.next
    } while token != nil
  }

  /// Fetches a page and checks that its keys have the prefix.
  private func page(
    _ prefix: ByteString, _ query: [(name: String, value: String)], of path: ObjectPath
  ) throws(StoreError) -> S3Listing {
    var query = query
    query += [
      ("list-type", "2"), ("encoding-type", "url"),
      ("prefix", String(decoding: prefix.bytes, as: UTF8.self)),
    ]
    let request = S3Request(.get, query: query, limit: S3Listing.limits.bytes)
    var answer: [UInt8] = []
    _ = try send(request, to: "list", path, into: &answer)
    let page: S3Listing
    do throws(S3Failure.Words) { page = try S3Listing(reading: answer) } catch {
      throw wrong(error.text, path)
    }
    for key in page.objects.map(\.key) + page.prefixes where !key.bytes.starts(with: prefix.bytes) {
      throw wrong("lists '\(key)', which does not begin with '\(prefix)'", path)
    }
    return page
  }

  private func wrong(_ words: String, _ path: ObjectPath) -> StoreError {
    error(S3Failure(.answer(words, host: client.endpoint.host)), to: "list", path)
  }
}

extension S3Listing.Object {
  fileprivate var status: ObjectStatus {
    ObjectStatus(isDirectory: false, size: size, modified: modified)
  }
}
