//! Pictures of lines over time, as SVG and as PNG: panels in rows, each with a title, a legend above its plot, axes with units.
//!
//! Knows nothing of what it draws. The font for the PNG and for the sizes of texts is part of the program, so a machine
//! without fonts or graphics libraries draws the same; an SVG names a generic sans-serif.

mod axis;

pub use axis::Scale;

use axis::Axis;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::sync::Once;

const WIDTH: u32 = 1280;
/// Title and subtitle of the picture.
const HEAD: u32 = 66;
const FONT: &str = "sans-serif";
static LABELS: &[u8] = include_bytes!("../font/labels.ttf");
/// Points of a line are marked while they are so few.
const MARKED: usize = 40;
/// Lines of more points are thin.
const THIN: usize = 400;
/// Pixels are drawn this many times as fine and then averaged, so that lines and letters are smooth.
const FINE: u32 = 2;
/// Higher pictures are drawn as they are, for the memory that it takes.
const HIGHEST_FINE: u32 = 6000;
/// Told apart by people with any colour vision; the first is for what matters most.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];
const GRID: RGBColor = RGBColor(225, 225, 225);
const DIM: RGBColor = RGBColor(90, 90, 90);

#[derive(Clone, Debug)]
pub struct Picture {
    pub title: String,
    pub subtitle: String,
    pub rows: Vec<Row>,
}

/// Panels beside each other, as wide as each other.
#[derive(Clone, Debug)]
pub struct Row {
    /// Pixels.
    pub height: u32,
    pub panels: Vec<Panel>,
}

#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// What the axes show, with the unit.
    pub x: String,
    pub y: String,
    /// Of the y axis.
    pub scale: Scale,
    pub lines: Vec<Line>,
    /// Said in the middle where there is no value at all.
    pub without: String,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    /// (x, y) in the order of x; a line is broken where y is not known.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DrawingError(String);

/// The picture as an SVG document.
pub fn svg(picture: &Picture) -> Result<String, DrawingError> {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, size(picture)).into_drawing_area();
    let pen = Pen {
        fine: 1,
        joined: true,
    };
    pen.draw(&root, picture)?;
    drop(root);
    Ok(text)
}

/// The picture as a PNG.
pub fn png(picture: &Picture) -> Result<Vec<u8>, DrawingError> {
    let (width, height) = size(picture);
    let fine = if height > HIGHEST_FINE { 1 } else { FINE };
    let (wide, high) = (width * fine, height * fine);
    let mut pixels = vec![0; wide as usize * high as usize * 3];
    let root = BitMapBackend::with_buffer(&mut pixels, (wide, high)).into_drawing_area();
    let pen = Pen {
        fine,
        joined: false,
    };
    pen.draw(&root, picture)?;
    drop(root);
    let pixels = averaged(&pixels, wide as usize, fine as usize);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let failed = |error: png::EncodingError| DrawingError(error.to_string());
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

fn size(picture: &Picture) -> (u32, u32) {
    let rows: u32 = picture.rows.iter().map(|row| row.height).sum();
    (WIDTH, HEAD + rows + 10)
}

type Area<DB> = DrawingArea<DB, Shift>;

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> DrawingError {
    DrawingError(error.to_string())
}

/// Each square of `fine` by `fine` pixels as one.
fn averaged(pixels: &[u8], wide: usize, fine: usize) -> Vec<u8> {
    let rows = pixels.chunks_exact(wide * fine * 3);
    let square = (fine * fine) as u32;
    let mut averaged = Vec::with_capacity(pixels.len() / square.max(1) as usize);
    for rows in rows {
        for at in 0..wide / fine {
            for channel in 0..3 {
                let inside = (0..fine * fine).map(|n| {
                    let (x, y) = (at * fine + n % fine, n / fine);
                    u32::from(rows[(y * wide + x) * 3 + channel])
                });
                averaged.push((inside.sum::<u32>() / square) as u8);
            }
        }
    }
    averaged
}

/// Draws at `fine` pixels for each of the picture's.
#[derive(Clone, Copy)]
struct Pen {
    fine: u32,
    /// Whether a line may be one stroke. In a bitmap the corner of two steep ones would stick out of the plot.
    joined: bool,
}

impl Pen {
    fn px(self, pixels: i32) -> i32 {
        pixels * self.fine as i32
    }

    fn point(self, (x, y): (i32, i32)) -> (i32, i32) {
        (self.px(x), self.px(y))
    }

    fn stroke(self, colour: &RGBColor, width: u32) -> ShapeStyle {
        ShapeStyle::from(colour).stroke_width(width * self.fine)
    }

    fn draw<DB: DrawingBackend>(
        self,
        root: &Area<DB>,
        picture: &Picture,
    ) -> Result<(), DrawingError> {
        static FONTS: Once = Once::new();
        FONTS.call_once(|| {
            // A font that cannot be read fails where the first text is drawn.
            let _ = plotters::style::register_font(FONT, FontStyle::Normal, LABELS);
        });
        root.fill(&WHITE).map_err(failed)?;
        let room = WIDTH as i32 - 32;
        self.write(root, &picture.title, (16, 12), (22, BLACK), room)?;
        self.write(root, &picture.subtitle, (16, 42), (15, DIM), room)?;
        let mut top = HEAD;
        for row in &picture.rows {
            let width = WIDTH / row.panels.len().max(1) as u32;
            for (at, panel) in row.panels.iter().enumerate() {
                let corner = self.point((at as i32 * width as i32, top as i32));
                let size = (width * self.fine, row.height * self.fine);
                self.panel(
                    &root.clone().shrink(corner, size),
                    panel,
                    (width, row.height),
                )?;
            }
            top += row.height;
        }
        root.present().map_err(failed)
    }

    /// Text from its upper left corner, cut off with an ellipsis where it is wider than `room`. Returns its width.
    fn write<DB: DrawingBackend>(
        self,
        area: &Area<DB>,
        text: &str,
        at: (i32, i32),
        (size, colour): (u32, RGBColor),
        room: i32,
    ) -> Result<i32, DrawingError> {
        let style = (FONT, size * self.fine).into_font().color(&colour);
        let width = |text: &str| {
            let size = area.estimate_text_size(text, &style).map_err(failed)?;
            Ok::<i32, DrawingError>((size.0 / self.fine) as i32)
        };
        let mut shown: String = text.replace(char::is_control, " ");
        if width(&shown)? > room {
            while !shown.is_empty() && width(&format!("{shown}…"))? > room {
                shown.pop();
            }
            shown.push('…');
        }
        area.draw_text(&shown, &style, self.point(at))
            .map_err(failed)?;
        width(&shown)
    }

    fn panel<DB: DrawingBackend>(
        self,
        area: &Area<DB>,
        panel: &Panel,
        (width, height): (u32, u32),
    ) -> Result<(), DrawingError> {
        let (width, height) = (width as i32, height as i32);
        self.write(area, &panel.title, (16, 6), (17, BLACK), width - 32)?;
        self.legend(area, &panel.lines, width)?;
        let points = || panel.lines.iter().flat_map(|line| &line.points);
        let values = || points().filter_map(|(_, y)| *y);
        let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let y = Axis::around(values(), panel.scale);
        let low = y.low();
        let mut chart = ChartBuilder::on(area)
            .margin_top(self.px(56))
            .margin_right(self.px(24))
            .margin_left(self.px(8))
            .margin_bottom(self.px(4))
            .x_label_area_size(self.px(42))
            .y_label_area_size(self.px(74))
            .build_cartesian_2d(Axis::until(last), y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&panel.x)
            .y_desc(&panel.y)
            .label_style((FONT, 14 * self.fine))
            .axis_desc_style((FONT, 15 * self.fine))
            .set_all_tick_mark_size(self.px(5))
            .bold_line_style(self.stroke(&GRID, 1))
            .light_line_style(TRANSPARENT)
            .axis_style(self.stroke(&DIM, 1))
            .draw()
            .map_err(failed)?;
        let shown = |y: f64| y.is_finite() && (panel.scale == Scale::Linear || y >= low);
        // The first line matters most and is not to be hidden by others.
        let lines = panel.lines.iter().zip(COLOURS.iter().cycle());
        for (line, colour) in lines.collect::<Vec<_>>().into_iter().rev() {
            let thin = line.points.len() > THIN;
            let stroke = self.stroke(colour, if thin { 1 } else { 2 });
            for part in parts(line, shown) {
                let length = if self.joined { part.len() } else { 2 };
                let strokes = part.windows(length.max(2));
                let strokes = strokes.map(|part| PathElement::new(part.to_vec(), stroke));
                chart.draw_series(strokes).map_err(failed)?;
                let marked = line.points.len() <= MARKED || part.len() == 1;
                let dots = part.iter().filter(|_| marked);
                let dots = dots.map(|point| Circle::new(*point, self.px(3), colour.filled()));
                chart.draw_series(dots).map_err(failed)?;
            }
        }
        if values().next().is_none() && !panel.without.is_empty() {
            let middle = (width / 2 - 60, height / 2);
            self.write(area, &panel.without, middle, (15, DIM), width / 2)?;
        }
        Ok(())
    }

    /// Above the plot, where it hides nothing. One line alone needs none.
    fn legend<DB: DrawingBackend>(
        self,
        area: &Area<DB>,
        lines: &[Line],
        width: i32,
    ) -> Result<(), DrawingError> {
        let mut left = 82;
        for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            if lines.len() < 2 || left + 60 > width {
                break;
            }
            let mark = vec![self.point((left, 41)), self.point((left + 18, 41))];
            area.draw(&PathElement::new(mark, self.stroke(colour, 3)))
                .map_err(failed)?;
            let at = (left + 24, 35);
            let wide = self.write(area, &line.name, at, (14, BLACK), width - left - 44)?;
            left += 24 + wide + 18;
        }
        Ok(())
    }
}

/// The pieces of a line between values that are not known.
fn parts(line: &Line, shown: impl Fn(f64) -> bool) -> Vec<Vec<(f64, f64)>> {
    let mut parts = vec![Vec::new()];
    for (x, y) in &line.points {
        match y.filter(|y| shown(*y)) {
            Some(y) => {
                let at = parts.len() - 1;
                parts[at].push((*x, y));
            }
            None => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lines: Vec<Line>, scale: Scale) -> Picture {
        Picture {
            title: "a <b> & \"c\"".into(),
            subtitle: "x".repeat(400),
            rows: vec![Row {
                height: 300,
                panels: vec![Panel {
                    title: "Latency".into(),
                    x: "elapsed, s".into(),
                    y: "latency, ms".into(),
                    scale,
                    lines,
                    without: "nothing".into(),
                }],
            }],
        }
    }

    fn line(points: &[(f64, Option<f64>)]) -> Line {
        Line {
            name: "l".into(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn a_line_is_broken_where_a_value_is_not_known() {
        let line = line(&[
            (1.0, Some(1.0)),
            (2.0, None),
            (3.0, Some(2.0)),
            (4.0, Some(3.0)),
        ]);
        let parts = parts(&line, |_| true);
        assert_eq!(parts, [vec![(1.0, 1.0)], vec![(3.0, 2.0), (4.0, 3.0)]]);
    }

    #[test]
    fn titles_are_escaped_and_long_ones_cut_off() {
        let picture = picture(vec![line(&[(1.0, Some(5.0))])], Scale::Linear);
        let text = svg(&picture).unwrap();
        assert!(text.contains("&lt;b&gt; &amp; "), "{text}");
        assert!(!text.contains("<b>"));
        assert!(text.contains("xxx…"));
        assert!(!text.contains(&"x".repeat(300)));
    }

    #[test]
    fn a_png_has_the_size_of_the_picture_and_ink_in_the_colours_of_its_lines() {
        let lines = vec![
            line(&[(1.0, Some(5.0)), (2.0, Some(9.0))]),
            line(&[(1.0, Some(2.0)), (2.0, Some(1.0))]),
        ];
        let picture = picture(lines, Scale::Logarithmic);
        let file = png(&picture).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), size(&picture));
        let ink = |colour: RGBColor| {
            let same = |pixel: &&[u8]| *pixel == [colour.0, colour.1, colour.2];
            pixels.chunks(3).filter(same).count()
        };
        assert!(ink(COLOURS[0]) > 500 && ink(COLOURS[1]) > 500, "no lines");
    }

    #[test]
    fn nothing_to_draw_and_odd_numbers_make_a_picture_all_the_same() {
        let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300];
        for scale in [Scale::Linear, Scale::Logarithmic] {
            assert!(
                svg(&picture(Vec::new(), scale))
                    .unwrap()
                    .contains("nothing")
            );
            for y in odd {
                let points = line(&[(0.0, Some(y)), (1.0, None), (f64::NAN, Some(y))]);
                png(&picture(vec![points], scale)).unwrap();
            }
        }
    }
}
