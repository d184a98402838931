import Foundation
import Testing

@testable import Codecs

/// Verifies hashing in lanes against implementations other than libsodium, and that no memory
/// outside the input is read.
struct HashWitnessTests {
  private static let widths = [4, 8].filter { $0 <= Blake2b.processorLanes }

  /// The digests of RFC 7693's example with 32 bytes of output, and of an empty input.
  @Test(arguments: widths) func agreesWithKnownDigests(lanes: Int) {
    let digests = Blake2b.hashInLanes(
      [0..<3, 0..<0, 0..<3], of: Array("abc".utf8).span, lanes: lanes)
    let abc = "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"
    let nothing = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"
    #expect(digests.map(\.hex) == [abc, nothing, abc])
  }

  /// Python uses the implementation of BLAKE2's authors.
  @Test(arguments: widths) func agreesWithPython(lanes: Int) throws {
    var random = Seeded(25)
    let bytes = random.bytes(60_000)
    let runs = (0..<60).map { number in
      let start = Int.random(in: 0...30_000, using: &random)
      let most = number < 50 ? 600 : 30_000
      return start..<(start + Int.random(in: 0...most, using: &random))
    }
    let script = """
      import hashlib, sys
      data = sys.stdin.buffer.read()
      for run in sys.argv[1:]:
          start, end = map(int, run.split("-"))
          print(hashlib.blake2b(data[start:end], digest_size=32).hexdigest())
      """
    let locations = runs.map { "\($0.lowerBound)-\($0.upperBound)" }
    let reported = try run(["python3", "-c", script] + locations, input: bytes)
    let lines = String(decoding: reported.output, as: UTF8.self).split(separator: "\n").map(
      String.init)
    #expect(reported.status == 0 && lines.count == 60, "\(reported.errors)")
    #expect(Blake2b.hashInLanes(runs, of: bytes.span, lanes: lanes).map(\.hex) == lines)
    #expect(Blake2b.hashInStreams(runs, of: bytes.span, lanes: lanes).map(\.hex) == lines)
  }

  /// The bytes end at a page boundary, and a read beyond it would end this process.
  @Test(arguments: widths) func readsNothingAfterARun(lanes: Int) throws {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    let start = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, flags, -1, 0))
    try #require(start != MAP_FAILED)
    defer { munmap(start, 2 * page) }
    try #require(mprotect(start + page, page, PROT_NONE) == 0)
    let memory = UnsafeMutableRawBufferPointer(start: start, count: page)
    memory.copyBytes(from: (0..<page).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    let bytes = Span<UInt8>(_bytes: UnsafeRawBufferPointer(memory).bytes)
    let runs = (0...400).map { (page - $0)..<page }
    let wanted = runs.map { Blake2b.hash(bytes.extracting($0)) }
    #expect(Blake2b.hashInLanes(runs, of: bytes, lanes: lanes) == wanted)
    // Each run is hashed separately, so that no lane reads on behalf of another.
    #expect(runs.flatMap { Blake2b.hashInLanes([$0], of: bytes, lanes: lanes) } == wanted)
    #expect(Blake2b.hashInStreams(runs, of: bytes, lanes: lanes) == wanted)
    #expect(runs.flatMap { Blake2b.hashInStreams([$0], of: bytes, lanes: lanes) } == wanted)
    // In these streams, all bytes end at the page boundary.
    var streams = runs.map { _ in Blake2b.Stream(lanes: lanes) }
    for _ in 0..<3 { Blake2b.Stream.update(&streams, by: runs, of: bytes) }
    let thrice = runs.map { run in
      var hash = Blake2b()
      for _ in 0..<3 { hash.update(bytes.extracting(run)) }
      return hash.finish()
    }
    #expect(streams.map { $0.finish() } == thrice)
  }
}
