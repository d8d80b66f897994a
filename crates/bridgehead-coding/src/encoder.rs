//! Bytes in, fewer bytes out, by one of three codings.
//!
//! The codecs are async-compression's own, without its readers: those go on for as long as there is something to read, and
//! here whoever calls says how much is done at once.
//!
//! Invariant: what has been flushed can be read in full by whoever decodes it, before anything else comes.

use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::flate::params::FlateEncoderParams;
use compression_codecs::zstd::params::CParameter;
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZstdEncoder};

use crate::coding::Coding;

/// Bytes that are encoded in a row: a millisecond's work for the slowest.
pub const SLICE: usize = 32 * 1024;

/// Where output is put before it is known how much it is.
const SCRATCH: usize = 8 * 1024;

/// Levels for what is made once and sent once: beyond these, each percent that is saved costs as much again.
const ZSTD: i32 = 3;
const BROTLI: i32 = 4;
const GZIP: i32 = 6;

/// How far back an encoder looks at most, as a power of two: what it keeps is several times that, for each answer.
const WINDOW: u32 = 17;
/// zstd's, for a body whose length nobody knows: it may go on for days.
const ENDLESS_WINDOW: u32 = 16;
/// As small as zstd's may be.
const LEAST_WINDOW: u32 = 10;

/// The encoder cannot go on, which none of them has a reason for.
#[derive(Debug)]
pub struct Spoiled;

/// One body's.
pub struct Encoder(Box<dyn EncodeV2 + Send + Sync>);

impl Encoder {
    /// For a body of this length, if it is known.
    #[must_use]
    pub fn new(coding: Coding, length: Option<u64>) -> Self {
        let window = window(length);
        Self(match coding {
            Coding::Zstd => {
                let window = if length.is_none() { ENDLESS_WINDOW } else { window };
                let (hash, chain) = (CParameter::hash_log(window - 1), CParameter::chain_log(window - 1));
                let params = [CParameter::window_log(window), hash, chain];
                Box::new(ZstdEncoder::new_with_params(ZSTD, &params))
            }
            Coding::Brotli => {
                let params = EncoderParams::default().quality(Level::Precise(BROTLI));
                let params = params.window_size(window.cast_signed());
                Box::new(BrotliEncoder::new(params.size_hint(hint(length))))
            }
            Coding::Gzip => {
                let level: flate2::Compression = flate2::Compression::new(GZIP.cast_unsigned());
                Box::new(GzipEncoder::new(FlateEncoderParams::from(level)))
            }
        })
    }

    /// Bytes that one keeps, measured over 300 KB of text.
    #[must_use]
    pub fn cost(coding: Coding, length: Option<u64>) -> usize {
        match (coding, length) {
            (Coding::Zstd, None) => 600 * 1024,
            (Coding::Zstd, Some(_)) => 1024 * 1024,
            (Coding::Brotli, _) => 2048 * 1024,
            (Coding::Gzip, _) => 352 * 1024,
        }
    }

    /// Takes all of `input`, and may keep it.
    ///
    /// # Errors
    /// Never, as far as is known.
    pub fn encode(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), Spoiled> {
        let mut input = PartialBuffer::new(input);
        while !input.unwritten().is_empty() {
            self.write(output, |codec, buffer| codec.encode(&mut input, buffer).map(|()| true))?;
        }
        Ok(())
    }

    /// Gives all that was taken.
    ///
    /// # Errors
    /// As above.
    pub fn flush(&mut self, output: &mut Vec<u8>) -> Result<(), Spoiled> {
        while !self.write(output, |codec, buffer| codec.flush(buffer))? {}
        Ok(())
    }

    /// Gives that, and the end.
    ///
    /// # Errors
    /// As above.
    pub fn finish(&mut self, output: &mut Vec<u8>) -> Result<(), Spoiled> {
        while !self.write(output, |codec, buffer| codec.finish(buffer))? {}
        Ok(())
    }

    fn write(
        &mut self,
        output: &mut Vec<u8>,
        step: impl FnOnce(&mut dyn EncodeV2, &mut WriteBuffer<'_>) -> std::io::Result<bool>,
    ) -> Result<bool, Spoiled> {
        let mut scratch = [0; SCRATCH];
        let mut buffer = WriteBuffer::new_initialized(&mut scratch);
        let over = step(&mut *self.0, &mut buffer).map_err(|_| Spoiled)?;
        output.extend_from_slice(buffer.written());
        Ok(over)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// No wider than the body is long.
fn window(length: Option<u64>) -> u32 {
    let bits = |length: u64| u64::BITS - length.leading_zeros();
    length.map_or(WINDOW, |length| bits(length).clamp(LEAST_WINDOW, WINDOW))
}

fn hint(length: Option<u64>) -> usize {
    length.and_then(|length| usize::try_from(length).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use compression_codecs::{BrotliDecoder, DecodeV2, GzipDecoder, ZstdDecoder};
    use proptest::prelude::*;

    const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    struct Decoder(Box<dyn DecodeV2>);

    impl Decoder {
        fn new(coding: Coding) -> Self {
            Self(match coding {
                Coding::Zstd => Box::new(ZstdDecoder::new()),
                Coding::Brotli => Box::new(BrotliDecoder::new()),
                Coding::Gzip => Box::new(GzipDecoder::new()),
            })
        }

        /// All that can be read by now.
        fn decode(&mut self, bytes: &[u8]) -> Vec<u8> {
            let mut input = PartialBuffer::new(bytes);
            let mut plain = Vec::new();
            loop {
                let mut scratch = [0; 1000];
                let mut buffer = WriteBuffer::new_initialized(&mut scratch);
                // One of them complains where there is nothing to read.
                let decoded = self.0.decode(&mut input, &mut buffer);
                let over = decoded
                    .or_else(|error| if input.unwritten().is_empty() { Ok(false) } else { Err(error) });
                let over = over.expect("it is what was written");
                plain.extend_from_slice(buffer.written());
                if over || (buffer.written_len() == 0 && input.unwritten().is_empty()) {
                    return plain;
                }
            }
        }
    }

    fn encoded(coding: Coding, pieces: &[Vec<u8>], length: Option<u64>) -> Vec<u8> {
        let mut encoder = Encoder::new(coding, length);
        let mut output = Vec::new();
        for piece in pieces {
            encoder.encode(piece, &mut output).expect("it goes on");
        }
        encoder.finish(&mut output).expect("it goes on");
        output
    }

    #[test]
    fn each_piece_can_be_read_once_it_is_flushed() {
        for coding in ALL {
            let (mut encoder, mut decoder) = (Encoder::new(coding, None), Decoder::new(coding));
            for piece in [&b"data: one\n\n"[..], b"", b"data: two\n\n", &[b'x'; 100_000], b"data: three\n\n"]
            {
                let mut output = Vec::new();
                encoder.encode(piece, &mut output).expect("it goes on");
                encoder.flush(&mut output).expect("it goes on");
                assert!(decoder.decode(&output) == piece, "{coding:?} {}", piece.len());
                // Nothing is left that a second flush could give.
                let mut more = Vec::new();
                encoder.flush(&mut more).expect("it goes on");
                assert_eq!(decoder.decode(&more), b"", "{coding:?}");
            }
        }
    }

    #[test]
    fn text_becomes_shorter_and_an_empty_body_has_an_end() {
        let text = "It was the best of times, it was the worst of times. ".repeat(100).into_bytes();
        for coding in ALL {
            let output = encoded(coding, std::slice::from_ref(&text), Some(text.len() as u64));
            assert!(output.len() < text.len() / 10, "{coding:?}: {}", output.len());
            assert!(Decoder::new(coding).decode(&output) == text, "{coding:?}");
            let empty = encoded(coding, &[], None);
            assert!(Decoder::new(coding).decode(&empty).is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_read_is_what_was_written(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 0..6),
            known in any::<bool>(),
        ) {
            let whole = pieces.concat();
            for coding in ALL {
                let output = encoded(coding, &pieces, known.then_some(whole.len() as u64));
                prop_assert!(Decoder::new(coding).decode(&output) == whole, "{coding:?}");
            }
        }
    }
}
